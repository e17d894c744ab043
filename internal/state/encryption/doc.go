// Package encryption encrypts states as OpenTofu does: AES-GCM with a key that PBKDF2 derives from a passphrase. What it writes, an OpenTofu reads
// that is configured with key_provider "pbkdf2", method "aes_gcm" and the same passphrase, and the other way round.
package encryption
