package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/litellm"
)

func newConvert() *cobra.Command {
	return &cobra.Command{
		Use:   "convert FILE",
		Short: "Convert LiteLLM's config.yaml into a configuration of the gateway",
		Long: `Convert LiteLLM's config.yaml into a configuration of the gateway, on the standard output.
Everything that was not converted, or not quite, is reported on the standard error with its
line. Secrets in the file are not copied.

Clients keep their SDKs, and need another base URL: that of the provider, such as
http://127.0.0.1:8080/openai/v1. The gateway does not translate between providers' APIs.`,
		Example: "  ratelimit convert config.yaml > gateway.yaml\n  ratelimit check gateway.yaml",
		Args:    arguments,
		RunE: func(c *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			result, err := litellm.Convert(args[0], text)
			if err != nil {
				return err
			}
			for _, remark := range result.Remarks {
				fmt.Fprintln(c.ErrOrStderr(), remark)
			}
			_, err = io.WriteString(c.OutOrStdout(), result.YAML)
			return err
		},
	}
}
