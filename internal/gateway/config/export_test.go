package config

// NewSecret returns a secret that holds a text.
func NewSecret(value string) Secret { return Secret{value} }
