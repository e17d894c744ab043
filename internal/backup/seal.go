package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
)

// Recipients are the people who can decrypt a backup. Without any, files are not encrypted.
type Recipients []age.Recipient

// ParseRecipients reads recipients of age: age1..., or public SSH keys. Those of files are one a
// line, with comments.
func ParseRecipients(given []string, files []string) (Recipients, error) {
	var all Recipients
	add := func(text, where string) error {
		one, err := parseRecipient(text)
		if err != nil {
			return fmt.Errorf("reading the recipient in %s: %w", where, err)
		}
		all = append(all, one)
		return nil
	}
	for _, text := range given {
		if err := add(text, "--recipient "+text); err != nil {
			return nil, err
		}
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading recipients: %w", err)
		}
		before := len(all)
		for number, line := range strings.Split(string(content), "\n") {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if err := add(line, fmt.Sprintf("line %d of %s", number+1, file)); err != nil {
				return nil, err
			}
		}
		if len(all) == before {
			return nil, fmt.Errorf("the file %s has no recipients; write one a line, such as age1... from age-keygen -y", file)
		}
	}
	return all, nil
}

func parseRecipient(text string) (age.Recipient, error) {
	if strings.HasPrefix(text, "AGE-SECRET-KEY-") {
		return nil, errors.New("it is an identity, which is secret; age-keygen -y prints its recipient")
	}
	if strings.HasPrefix(text, "ssh-") {
		return agessh.ParseRecipient(text)
	}
	parsed, err := age.ParseRecipients(strings.NewReader(text))
	if err != nil || len(parsed) != 1 {
		return nil, fmt.Errorf("%q is no recipient; write age1... as age-keygen -y prints it, or a public SSH key", text)
	}
	return parsed[0], nil
}

// Identities open what is encrypted for them.
type Identities []age.Identity

// ReadIdentities reads the files of identities: those of age-keygen, or private SSH keys without a
// passphrase.
func ReadIdentities(files []string) (Identities, error) {
	var all Identities
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading identities: %w", err)
		}
		if bytes.HasPrefix(content, []byte("-----BEGIN")) {
			one, err := agessh.ParseIdentity(content)
			if err != nil {
				return nil,
					fmt.Errorf("reading the identity in %s: it is no private SSH key that can be read: it must be one of type ed25519 or rsa, and have no passphrase", file)
			}
			all = append(all, one)
			continue
		}
		parsed, err := age.ParseIdentities(bytes.NewReader(content))
		if err != nil { // age's own error may quote a line of the file
			return nil,
				fmt.Errorf("reading the identities in %s: they are no identities; the file must be as age-keygen writes it, or a private SSH key", file)
		}
		all = append(all, parsed...)
	}
	return all, nil
}

// seal encrypts a file.
func (r Recipients) seal(content []byte) ([]byte, error) {
	var sealed bytes.Buffer
	writer, err := age.Encrypt(&sealed, r...)
	if err != nil {
		return nil, fmt.Errorf("encrypting a file of the backup: %w", err)
	}
	if _, err := writer.Write(content); err != nil {
		return nil, fmt.Errorf("encrypting a file of the backup: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("encrypting a file of the backup: %w", err)
	}
	return sealed.Bytes(), nil
}

// open decrypts a file.
func (i Identities) open(content []byte, name string) ([]byte, error) {
	if len(i) == 0 {
		return nil, fmt.Errorf("reading %s: it is encrypted; name the file of an identity with --identity", name)
	}
	reader, err := age.Decrypt(bytes.NewReader(content), i...)
	if _, other := errors.AsType[*age.NoIdentityMatchError](err); other {
		return nil, fmt.Errorf("reading %s: it is encrypted for others than --identity", name)
	}
	if err != nil {
		return nil, fmt.Errorf("decrypting %s: %w", name, err)
	}
	opened, err := io.ReadAll(io.LimitReader(reader, maxFile))
	if err != nil {
		return nil, fmt.Errorf("decrypting %s: the file is damaged: %w", name, err)
	}
	return opened, nil
}
