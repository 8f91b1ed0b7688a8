//go:build !linux && !darwin

package uptime

func readBootName() string { return "" }

func sinceBoot() (ns int64, ok bool) { return 0, false }
