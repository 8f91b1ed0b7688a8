package gateway

import (
	"io"
	"net/http"
	"strings"
)

// maxVideo is the most bytes of what a provider says of a video.
const maxVideo = 1 << 16

// readRemix reads a request for a new version of a stored video. The request has neither a model nor a length: they are
// those of the stored video, which the gateway asks the provider for.
func (x *exchange) readRemix(id string) *refusal {
	if x.target.RawPath != "" {
		return refusalf(http.StatusBadRequest, "the path is escaped where it need not be")
	}
	sent, target := x.sent, x.target
	target.Path = strings.TrimRight(target.Path, "/")
	target.Path = target.Path[:len(target.Path)-len("/remix")]
	response, err := x.get(x.r.Header, target)
	if x.sent = sent; err != nil {
		return x.unreached(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxVideo))
	if err != nil {
		return x.unreached(err)
	}
	r, err := x.endpoint.Read(text)
	if response.StatusCode != http.StatusOK || err != nil || r.Model == "" || r.Wrong != "" {
		return refusalf(http.StatusBadRequest, "what a remix of the video %.100q costs is not known: the provider answers with %d when the gateway asks for the video", id, response.StatusCode)
	}
	r.Form = true // the body is sent as it is
	x.call.Request = r
	return nil
}
