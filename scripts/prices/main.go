// Command prices writes the table of prices that package price embeds. The facts come from the npm
// package @pydantic/genai-prices, which has the MIT licence; what service tiers cost comes from the
// providers' own pages (services.go), and how long prompts and answers can be from two more packages (maxima.go).
// Run it by make prices.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"dappco.re/go/core/go-ratelimit/price"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: prices FOLDER, such as price")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "prices:", err)
		os.Exit(1)
	}
}

// table is the file that package price reads.
type table struct {
	price.About
	Providers []provider `json:"providers"`
}

func run(folder string) error {
	p, err := download("@pydantic/genai-prices")
	if err != nil {
		return err
	}
	data, err := parseFirst(p.files["package/dist/index.js"], "[")
	if err != nil {
		return err
	}
	providers, err := convert(data)
	if err != nil {
		return err
	}
	if err := addMedia(providers); err != nil {
		return err
	}
	licences, sources, err := downloadMaxima(providers)
	if err != nil {
		return err
	}
	text, err := json.Marshal(table{price.About{
		Source:  "npm: " + p.name,
		Version: p.version,
		Date:    p.date,
		Licence: "MIT, Copyright (c) Pydantic Services Inc. 2025 to present: see table.LICENSE",
		Maxima:  sources,
	}, providers})
	if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte(`{"id"`), []byte("\n"+`{"id"`)) // a line for each model
	if err := os.WriteFile(filepath.Join(folder, "table.LICENSE"), []byte(p.files["package/LICENSE"]+licences), 0o644); err != nil {
		return err
	}
	models := 0
	for _, p := range providers {
		models += len(p.Models)
	}
	fmt.Printf("%s %s of %s: %d models of %d providers, %d KiB\n", p.name, p.version, p.date, models, len(providers), len(text)>>10)
	return os.WriteFile(filepath.Join(folder, "table.json"), append(text, '\n'), 0o644)
}
