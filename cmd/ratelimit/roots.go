package main

// Where the system has no certificates of authorities, as in an image from scratch, those of Mozilla
// that were current when the program was built are used. See decision 49.
import _ "golang.org/x/crypto/x509roots/fallback"
