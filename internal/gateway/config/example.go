package config

import _ "embed"

// Example is a file with every field, its default, and what it is for.
//
//go:embed example.yaml
var Example string
