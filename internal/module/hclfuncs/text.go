package hclfuncs

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

var textFunctions = map[string]function.Function{
	"base64decode": textFunction(cty.String, []string{"str"}, base64Decode),
	"base64encode": stringFunction("str",
		func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }),
	"base64sha256": stringFunction("str",
		func(text string) string { return base64.StdEncoding.EncodeToString(sum256(text)) }),
	"base64sha512": stringFunction("str",
		func(text string) string { return base64.StdEncoding.EncodeToString(sum512(text)) }),
	"basename": stringFunction("path", filepath.Base),
	"dirname":  stringFunction("path", filepath.Dir),
	"endswith": textTest("suffix", strings.HasSuffix),
	"md5": stringFunction("str",
		func(text string) string { sum := md5.Sum([]byte(text)); return hex.EncodeToString(sum[:]) }),
	"replace": textFunction(cty.String, []string{"str", "substr", "replace"}, replace),
	"sha1": stringFunction("str",
		func(text string) string { sum := sha1.Sum([]byte(text)); return hex.EncodeToString(sum[:]) }),
	"sha256":      stringFunction("str", func(text string) string { return hex.EncodeToString(sum256(text)) }),
	"sha512":      stringFunction("str", func(text string) string { return hex.EncodeToString(sum512(text)) }),
	"startswith":  startsWith,
	"strcontains": textTest("substr", strings.Contains),
	"timecmp":     textFunction(cty.Number, []string{"timestamp_a", "timestamp_b"}, compareTimes),
	"urldecode":   textFunction(cty.String, []string{"str"}, urlDecode),
	"urlencode":   stringFunction("str", url.QueryEscape),
}

func stringFunction(parameter string, compute func(string) string) function.Function {
	return textFunction(cty.String, []string{parameter}, func(args []string) (cty.Value, error) {
		return cty.StringVal(compute(args[0])), nil
	})
}

func textTest(parameter string, holds func(text, part string) bool) function.Function {
	return textFunction(cty.Bool, []string{"str", parameter}, func(args []string) (cty.Value, error) {
		return cty.BoolVal(holds(args[0], args[1])), nil
	})
}

// startsWith has a result also for a text of which only the beginning is known: a name that the API
// server will complete.
var startsWith = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "str", Type: cty.String, AllowUnknown: true},
		{Name: "prefix", Type: cty.String}},
	Type:         function.StaticReturnType(cty.Bool),
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		prefix := args[1].AsString()
		if args[0].IsKnown() {
			return cty.BoolVal(strings.HasPrefix(args[0].AsString(), prefix)), nil
		}
		switch begun := args[0].Range().StringPrefix(); {
		case strings.HasPrefix(begun, prefix):
			return cty.True, nil
		case !strings.HasPrefix(prefix, begun):
			return cty.False, nil
		default:
			return cty.UnknownVal(cty.Bool), nil
		}
	},
})

func sum256(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

func sum512(text string) []byte {
	sum := sha512.Sum512([]byte(text))
	return sum[:]
}

func base64Decode(args []string) (cty.Value, error) {
	decoded, err := base64.StdEncoding.DecodeString(args[0])
	if err != nil {
		return cty.NilVal, errors.New("the text is not base64")
	}
	if !utf8.Valid(decoded) {
		return cty.NilVal, errors.New("decoded text is not valid UTF-8")
	}
	return cty.StringVal(string(decoded)), nil
}

// replace treats a text between slashes as a regular expression.
func replace(args []string) (cty.Value, error) {
	text, old, by := args[0], args[1], args[2]
	source, is := asPattern(old)
	if !is {
		return cty.StringVal(strings.ReplaceAll(text, old, by)), nil
	}
	pattern, err := regexp.Compile(source)
	if err != nil {
		return cty.NilVal, fmt.Errorf("compiling the regular expression: %w", err)
	}
	return cty.StringVal(pattern.ReplaceAllString(text, by)), nil
}

// asPattern returns the regular expression between slashes, if any.
func asPattern(text string) (string, bool) {
	if len(text) < 2 || !strings.HasPrefix(text, "/") || !strings.HasSuffix(text, "/") {
		return "", false
	}
	return text[1 : len(text)-1], true
}

func urlDecode(args []string) (cty.Value, error) {
	decoded, err := url.QueryUnescape(args[0])
	if err != nil {
		return cty.NilVal, errors.New("the text is not encoded for a URL")
	}
	return cty.StringVal(decoded), nil
}

func compareTimes(args []string) (cty.Value, error) {
	times := make([]time.Time, 0, len(args))
	for _, text := range args {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return cty.NilVal, errors.New("the text is not an RFC 3339 timestamp")
		}
		times = append(times, parsed)
	}
	return cty.NumberIntVal(int64(times[0].Compare(times[1]))), nil
}
