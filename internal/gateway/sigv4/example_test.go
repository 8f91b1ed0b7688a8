package sigv4_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/sigv4"
)

func Example() {
	os.Setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE") // as one of the places where AWS's tools look
	os.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	defer os.Unsetenv("AWS_ACCESS_KEY_ID")
	defer os.Unsetenv("AWS_SECRET_ACCESS_KEY")

	body := `{"messages": []}`
	r, err := http.NewRequest("POST", "https://bedrock-runtime.eu-west-1.amazonaws.com/model/claude/converse", strings.NewReader(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	signer := sigv4.New(sigv4.Account{Region: "eu-west-1"})
	_, err = signer.Sign(context.Background(), r, []byte(body))
	credential, _, _ := strings.Cut(r.Header.Get("Authorization"), "/")
	fmt.Println(credential, err)
	// Output: AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE <nil>
}
