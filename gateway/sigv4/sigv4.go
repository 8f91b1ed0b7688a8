// Package sigv4 signs requests to Bedrock with AWS's Signature Version 4, with credentials
// that AWS's own SDK finds: in the environment, in its files, of a machine or of a role.
package sigv4

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// Account is whose credentials sign, and for which region. The credentials are those of
// the SDK's default chain if Profile is empty, and their own if RoleARN is.
type Account struct {
	Region  string
	Profile string // of the shared files
	RoleARN string // of the role that is assumed with the credentials
}

// Signer signs requests for an account. It looks for credentials when it first signs, and
// renews them before they expire. It may be used by several goroutines at a time.
type Signer struct {
	account Account
	signer  *v4.Signer

	mu    sync.Mutex
	found aws.CredentialsProvider // nil before any were found
}

// New returns a signer for an account.
func New(a Account) *Signer { return &Signer{account: a, signer: v4.NewSigner()} }

// service is the name of Bedrock in signatures.
const service = "bedrock"

// patience is for how long a request waits for credentials, which may have to be fetched
// from another server.
const patience = 30 * time.Second

// Sign signs a request that is sent with a body, which may be in pieces, as it stands: its
// URL, its Host and its headers must not change any more. It returns the session token that
// it has put in, which is empty with credentials that last.
func (s *Signer) Sign(ctx context.Context, r *http.Request, body ...[]byte) (token string, err error) {
	c, err := s.retrieve(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, piece := range body {
		sum.Write(piece)
	}
	err = s.signer.SignHTTP(ctx, c, r, hex.EncodeToString(sum.Sum(nil)), service, s.account.Region, time.Now())
	return c.SessionToken, err
}

// retrieve returns the account's credentials.
func (s *Signer) retrieve(ctx context.Context) (aws.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	provider, err := s.credentials(ctx)
	if err != nil {
		return aws.Credentials{}, err
	}
	c, err := provider.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, fmt.Errorf("ratelimit: no credentials of AWS to sign with: %w", err)
	}
	return c, nil
}

// credentials returns where the account's credentials come from. Reading the SDK's files
// may fail, and is tried again with the next request then.
func (s *Signer) credentials(ctx context.Context) (aws.CredentialsProvider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found != nil {
		return s.found, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(s.account.Region), config.WithSharedConfigProfile(s.account.Profile))
	if err != nil {
		return nil, fmt.Errorf("ratelimit: the configuration of AWS cannot be read: %w", err)
	}
	s.found = cfg.Credentials
	if s.account.RoleARN != "" {
		s.found = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), s.account.RoleARN))
	}
	return s.found, nil
}
