// Package sigv4 signs requests to Bedrock with AWS's Signature Version 4. AWS's own SDK
// finds the credentials: in the environment, in its files, or those of a machine or a role.
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

// Account says which credentials sign requests, and for which region.
type Account struct {
	Region  string
	Profile string // a profile in the SDK's files; empty: the SDK's default chain of credentials
	RoleARN string // a role to assume with these credentials; empty: they sign themselves
}

// Signer signs requests for an account. It looks for credentials when it first signs, and
// renews them before they expire. Its methods may be called concurrently.
type Signer struct {
	account Account
	signer  *v4.Signer

	mu       sync.Mutex
	provider aws.CredentialsProvider // nil before the SDK's configuration was read
}

// New returns a signer for an account. It reads nothing yet.
func New(a Account) *Signer { return &Signer{account: a, signer: v4.NewSigner()} }

const (
	service = "bedrock" // Bedrock's name in signatures

	// maxWait bounds how long a request waits for credentials, which another server may
	// have to issue.
	maxWait = 30 * time.Second
)

// Sign signs a request and its body, which may be in pieces. The request's URL, Host and
// headers must not change afterwards. Sign returns the session token that it has put into the
// request; it is empty with credentials that do not expire.
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
	ctx, cancel := context.WithTimeout(ctx, maxWait)
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

// credentials returns the source of the account's credentials. If the SDK's files cannot
// be read, the next request tries again.
func (s *Signer) credentials(ctx context.Context) (aws.CredentialsProvider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.provider != nil {
		return s.provider, nil
	}
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(s.account.Region), config.WithSharedConfigProfile(s.account.Profile))
	if err != nil {
		return nil, fmt.Errorf("ratelimit: the configuration of AWS cannot be read: %w", err)
	}
	s.provider = cfg.Credentials
	if s.account.RoleARN != "" {
		s.provider = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), s.account.RoleARN))
	}
	return s.provider, nil
}
