package instance

import (
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
)

var (
	// accessKeyID matches the ID of an access key, of a user or of a session. Its first four letters are followed by base32.
	accessKeyID = regexp.MustCompile(`^(?:AKIA|ASIA)[A-Z2-7]{16}$`)
	// roleAccount finds the account in the ARN of a role.
	roleAccount = regexp.MustCompile(`^arn:aws[a-z-]*:iam::([0-9]{12}):role/`)
)

// awsAccount returns the account of AWS credentials, from the first of some keys that the Secret has; "" where it is unknown.
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

// awsAccountOfConfig returns the account that the default profile of a configuration file of AWS's SDKs signs in to: its role's, or its key's.
func awsAccountOfConfig(text string) string {
	values, section := map[string]string{}, "default"
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if header, ok := strings.CutPrefix(line, "["); ok {
			section = strings.TrimSpace(strings.TrimPrefix(strings.TrimSuffix(header, "]"), "profile "))
			continue
		}
		if name, value, ok := strings.Cut(line, "="); ok && section == "default" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
			values[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	if match := roleAccount.FindStringSubmatch(values["role_arn"]); match != nil {
		return match[1]
	}
	if values["role_arn"] != "" {
		return "" // the key is of the account that assumes the role
	}
	return awsAccountOfKey(values["aws_access_key_id"])
}

// awsAccountOfKey returns the account of an access key's ID: behind the prefix are 80 bits in base32, of which the first is 1 and the
// next 40 are the account. The IDs of keys that were made before March 2019 have a 0 there, and contain no account.
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
