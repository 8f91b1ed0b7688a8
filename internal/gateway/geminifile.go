package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	deposits "dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/batch"
	"dappco.re/go/core/go-ratelimit/internal/call"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// Gemini gives no uploaded file back, so the gateway reads the calls of a batch when their file is uploaded. The store
// keeps a digest of them under the hash of the file's content. When a batch is submitted, the provider says which hash
// its file has, and once more when the batch has its turn, because a client may replace the file of a name meanwhile.

// Bounds of files that are being uploaded.
const (
	maxUploads    = 16      // that come in several pieces, at a time
	maxUploadLine = 4 << 20 // bytes of a line
	maxDigests    = 1000    // that a gateway has the store keep
	maxFileAnswer = 1 << 16 // bytes of what the provider says of a file
)

// An uploadedFile is a file of Gemini's that is being uploaded.
type uploadedFile struct {
	mu     sync.Mutex // the transport may still read the body of a request that was served
	sum    hash.Hash
	lines  batch.Lines
	digest batch.Digest
	begun  bool
	other  bool // it is no file with calls
}

// Write reads the next bytes.
func (f *uploadedFile) Write(p []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.other || len(p) == 0 {
		return
	}
	f.other = !f.begun && p[0] != '{'
	f.begun = true
	if !f.other {
		_, err := f.lines.Write(p)
		f.other = err != nil
		f.sum.Write(p)
	}
}

// end returns the digest of the file, and the name by which the store keeps it. ok is false if it is no file with calls.
func (f *uploadedFile) end(provider string) (name string, note []byte, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.other || !f.begun || f.lines.Close() != nil {
		return "", nil, false
	}
	f.other = true
	note, err := json.Marshal(f.digest)
	return digestName(provider, f.sum.Sum(nil)), note, err == nil
}

// digestName returns the name in the store of the digest of a file, by the hash of its content.
func digestName(provider string, sum []byte) string {
	return "upload/" + url.PathEscape(provider) + "/" + hex.EncodeToString(sum)
}

// isDigest reports whether a deposit of this name in the store is the digest of an uploaded file.
func isDigest(name string) bool { return strings.HasPrefix(name, "upload/") }

// uploads are the files that are being uploaded, by the ids of their uploads, and the digests of those that were.
type uploads struct {
	mu    sync.Mutex
	open  map[string]*uploadedFile
	begun ownedNames // the ids of open
	kept  ownedNames // names of digests
}

// ownedNames are names of what projects have, the oldest first.
type ownedNames []ownedName

type ownedName struct{ project, name string }

// add adds a name. If there are more than most, it removes the oldest of the project that has most of them, and returns
// it: so no project displaces what another one has, unless that has more.
func (o *ownedNames) add(project, name string, most int) (removed string) {
	if *o = append(*o, ownedName{project, name}); len(*o) <= most {
		return ""
	}
	count := map[string]int{}
	for _, n := range *o {
		count[n.project]++
	}
	oldest := 0
	for i, n := range *o {
		if count[n.project] > count[(*o)[oldest].project] {
			oldest = i
		}
	}
	removed = (*o)[oldest].name
	*o = slices.Delete(*o, oldest, oldest+1)
	return removed
}

// at returns the file of an upload, or nil if that was begun elsewhere. A new one may take the place of another: the batch
// of that file will not be counted. users are the fields in which calls name their users.
func (u *uploads) at(project, id string, first bool, users []dialect.UserField) *uploadedFile {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !first {
		return u.open[id]
	}
	if u.open == nil {
		u.open = map[string]*uploadedFile{}
	}
	u.remove(id)
	f := &uploadedFile{sum: sha256.New(), digest: batch.Digest{Fields: users}}
	f.lines = batch.Lines{Max: maxUploadLine, Each: func(line []byte) error { return f.digest.Add(line) }}
	u.open[id] = f
	delete(u.open, u.begun.add(project, id, maxUploads))
	return f
}

func (u *uploads) forget(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.remove(id)
}

// remove is forget for a caller that has locked mu.
func (u *uploads) remove(id string) {
	delete(u.open, id)
	u.begun = slices.DeleteFunc(u.begun, func(n ownedName) bool { return n.name == id })
}

// keep records that the store keeps a digest, and returns the name of one that it must forget in exchange, or "".
func (u *uploads) keep(project, name string) (oldest string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.kept.add(project, name, maxDigests)
}

// readUpload returns a body that is read as it passes if it is a piece of a file that is uploaded to Gemini, and what is
// to be called with the answer.
func (x *exchange) readUpload(body io.ReadCloser) (io.ReadCloser, func(*http.Response)) {
	command, id := x.r.Header.Get("X-Goog-Upload-Command"), x.target.Query().Get("upload_id")
	if x.upstream.Kind != dialect.Gemini || id == "" || !strings.Contains(command, "upload") || x.r.Header["Content-Encoding"] != nil || x.g.batches.vault == nil {
		return body, func(*http.Response) {}
	}
	all := &x.g.batches.uploads
	id = x.Provider + "/" + id
	f := all.at(x.Project, id, x.r.Header.Get("X-Goog-Upload-Offset") == "0", x.cfg.Users.Fields)
	if f == nil {
		return body, func(*http.Response) {}
	}
	return &readBeside{body, f}, func(response *http.Response) {
		last := strings.Contains(command, "finalize")
		if failed := response == nil || response.StatusCode != http.StatusOK; last || failed {
			all.forget(id)
			if !failed {
				x.g.batches.keepDigest(f, x.Provider, x.Project)
			}
		}
	}
}

// readBeside is a body that a file reads, too.
type readBeside struct {
	io.ReadCloser
	file *uploadedFile
}

func (r *readBeside) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.file.Write(p[:n])
	return n, err
}

// keepDigest stores the digest of a file with calls.
func (o *openBatches) keepDigest(f *uploadedFile, provider, project string) {
	name, note, ok := f.end(provider)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
	defer cancel()
	err := o.vault.Deposit(ctx, name, nil, note)
	again := errors.Is(err, deposits.ErrDeposited)
	if again { // users may have been looked for in other fields when the same file was uploaded before
		o.vault.DropDeposit(ctx, name) // an error comes again
		err = o.vault.Deposit(ctx, name, nil, note)
	}
	switch {
	case errors.Is(err, deposits.ErrDeposited): // by another upload of the same file just now
	case err != nil:
		o.g.log.Warn("batches with an uploaded file cannot be counted: the store does not keep what is in it", "error", err)
	case !again:
		if oldest := o.uploads.keep(project, name); oldest != "" {
			o.vault.DropDeposit(ctx, oldest) // if it stays, it is dropped later: see closeThese
		}
	}
}

// geminiFile is what the names of Gemini's files look like.
var geminiFile = regexp.MustCompile(`^files/[a-z0-9-]{1,60}$`)

// expectFile adds the calls in a file to a batch of a model of Gemini's. It reports false if nothing is known of the file.
func (x *exchange) expectFile(b *call.Batch, file, model string) (known bool, refused *refusal) {
	folder := strings.LastIndex(x.target.Path, "/models/")
	if x.g.batches.vault == nil || folder < 0 || !geminiFile.MatchString(file) {
		return false, nil
	}
	target := url.URL{Path: x.target.Path[:folder+1] + file}
	sum, err := x.hashOf(target)
	if err != nil {
		return false, x.unreached(err)
	}
	ctx, cancel := context.WithTimeout(x.ctx, batchTimeout)
	defer cancel()
	id, note, err := x.g.batches.vault.FindDeposit(ctx, digestName(x.Provider, sum))
	if err != nil {
		return false, x.undecided(err)
	}
	var digest batch.Digest
	if id == "" || json.Unmarshal(note, &digest) != nil {
		return false, nil
	}
	if refused := x.mentionUsers(&digest, file); refused != nil {
		return false, refused
	}
	for _, g := range digest.Groups {
		if named := g.Shape.Model; named != "" && dialect.PlainName(dialect.Gemini, named) != dialect.PlainName(dialect.Gemini, model) {
			return false, refusalf(http.StatusBadRequest, "a call in the file %q has the model %.100q: it must be that of the path", file, named)
		}
		r := g.Shape.Request(dialect.Endpoint{Provider: dialect.Gemini, API: dialect.Generate, Model: model})
		if err := b.Expect(x.Project, &r, g.Calls); err != nil {
			return false, refusalf(http.StatusBadRequest, "%v", err)
		}
	}
	x.file = &batchFile{target, sum}
	return b.Calls() > 0, nil
}

// mentionUsers notes a paused user that the calls of a file name. It refuses a file of which nobody knows whether they do,
// because the users were looked for in other fields, or there are too many of them.
func (x *exchange) mentionUsers(d *batch.Digest, file string) *refusal {
	if !x.usersInBodies() || !x.g.controls.State().PausesInside(x.Project) {
		return nil
	}
	if d.Many || !slices.Equal(d.Fields, x.cfg.Users.Fields) {
		return refusalf(http.StatusBadRequest, "a user of the project is paused, and the gateway cannot tell whether a call in the file %q is of that user: upload the calls again, those of at most 100 users in a file", file)
	}
	for _, user := range d.Users {
		x.mentionUser(user)
	}
	return nil
}

// batchFile is the file with the calls of a batch.
type batchFile struct {
	target url.URL
	sum    []byte
}

// checkFile refuses a batch whose file was replaced since its calls were counted. A client chooses the names of files, and
// a batch may have waited for long.
func (x *exchange) checkFile() *refusal {
	if x.file == nil {
		return nil
	}
	switch sum, err := x.hashOf(x.file.target); {
	case err != nil:
		return x.unreached(err)
	case !bytes.Equal(sum, x.file.sum):
		return refusalf(http.StatusConflict, "the file of the batch was replaced after its calls were counted: submit the batch again")
	}
	return nil
}

// hashOf asks the provider for the hash of a file's content: nil if it says none.
func (x *exchange) hashOf(target url.URL) ([]byte, error) {
	sent := x.sent
	defer func() { x.sent = sent }()
	response, err := x.get(x.r.Header, target)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxFileAnswer))
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, err
	}
	var about struct {
		Hash string `json:"sha256Hash"`
	}
	json.Unmarshal(text, &about) // without a hash, the file is not known
	sum, _ := base64.StdEncoding.DecodeString(about.Hash)
	if plain, err := hex.DecodeString(string(sum)); err == nil && len(plain) == sha256.Size {
		return plain, nil // Gemini writes base64 of the hash in hexadecimal digits
	}
	return sum, nil
}
