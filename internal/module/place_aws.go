package module

import (
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
)

var (
	// accessKeyID matches the ID of an access key of a user or a session: four letters followed by
	// base32.
	accessKeyID = regexp.MustCompile(`^(?:AKIA|ASIA)[A-Z2-7]{16}$`)
	// roleAccount extracts the account from the ARN of a role.
	roleAccount = regexp.MustCompile(`^arn:aws[a-z-]*:iam::([0-9]{12}):role/`)
)

// awsAccount returns the account of AWS credentials from the first of the keys that the Secret has,
// or "" if unknown.
func (r placeReader) awsAccount(keys []string) string {
	for _, key := range keys {
		text := strings.TrimSpace(string(r.key(key, key)))
		switch {
		case text == "":
		case strings.Contains(text, "="):
			return awsAccountOfConfig(text)
		default:
			return awsAccountOfKey(text)
		}
	}
	return ""
}

// awsAccountOfConfig returns the account of the default profile in a configuration file of the AWS
// SDKs: its role's, or its key's.
func awsAccountOfConfig(text string) string {
	values, section := map[string]string{}, "default"
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if header, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSpace(strings.TrimPrefix(strings.TrimSuffix(header, "]"), "profile "))
			continue
		}
		if name, value, ok := strings.Cut(line, "="); ok && section == "default" && !strings.HasPrefix(line, "#") &&
			!strings.HasPrefix(line, ";") {
			values[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	if match := roleAccount.FindStringSubmatch(values["role_arn"]); match != nil {
		return match[1]
	}
	if values["role_arn"] != "" {
		return "" // the key belongs to the account that assumes the role
	}
	return awsAccountOfKey(values["aws_access_key_id"])
}

// awsAccountOfKey returns the account of an access key ID. After the prefix, it has 80 bits in
// base32: a 1 followed by 40 bits of the account. IDs from before March 2019 have a 0 there and
// contain no account.
func awsAccountOfKey(id string) string {
	if !accessKeyID.MatchString(id) {
		return ""
	}
	decoded, err := base32.StdEncoding.DecodeString(id[4:])
	if err != nil || decoded[0]&0x80 == 0 {
		return ""
	}
	account := binary.BigEndian.Uint64(decoded) << 1 >> 24
	if account > 999_999_999_999 {
		return ""
	}
	return fmt.Sprintf("%012d", account)
}
