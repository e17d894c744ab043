//go:build life

package life

import (
	"context"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/machine-iac/machine-iac-operator/test/nutanix/prism"
)

var nutanix = platform{
	name: "nutanix", module: "modules/nutanix", provider: "nutanix", infrastructure: "[simulated Prism Central](../test/nutanix/prism/prism.go)",
	open: openNutanix,
}

func openNutanix(w *world) *site {
	central, err := prism.Start(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(central.Close)
	environment := central.Environment()
	port, err := strconv.ParseInt(environment["NUTANIX_PORT"], 10, 32)
	if err != nil {
		w.t.Fatal(err)
	}
	login := func(password string) map[string][]byte {
		return map[string][]byte{"credentials": []byte(
			`[{"type":"basic_auth","data":{"prismCentral":{"username":"` + prism.Username + `","password":"` + password + `"},"prismElements":null}}]`)}
	}
	central.Slow(time.Second)
	image := func(name string) func(map[string]any) {
		return with("image", map[string]any{"type": "name", "name": name})
	}
	return &site{
		spec: configv1.InfrastructureSpec{PlatformSpec: configv1.PlatformSpec{Type: configv1.NutanixPlatformType, Nutanix: &configv1.NutanixPlatformSpec{
			PrismCentral:  configv1.NutanixPrismEndpoint{Address: environment["NUTANIX_ENDPOINT"], Port: int32(port)},
			PrismElements: []configv1.NutanixPrismElementEndpoint{{Name: "pe-1", Endpoint: configv1.NutanixPrismEndpoint{Address: environment["NUTANIX_ENDPOINT"], Port: int32(port)}}},
		}}},
		status:      &configv1.InfrastructureStatus{PlatformStatus: &configv1.PlatformStatus{Type: configv1.NutanixPlatformType}},
		authorities: w.read(environment["SSL_CERT_FILE"]),
		credentials: secret("nutanix-credentials", login(prism.Password)),
		rotate: func(context.Context) (map[string][]byte, error) {
			central.Rotate("rotated")
			return login("rotated"), nil
		},
		set: w.example(func(spec map[string]any) {
			image("rhcos")(spec)
			spec["subnets"] = []any{map[string]any{"type": "name", "name": "net"}}
		}),
		change: w.otherSecret("credentialsSecret", login(prism.Password)), refused: with("vcpuSockets", 8), invalid: with("memorySize", "none"),
		renew: func(context.Context) (func(map[string]any), error) {
			central.RemoveImage("rhcos")
			return image("rhcos-next"), nil
		},
		look: func(_ context.Context, name string) ([]string, error) { return central.UUIDs(name), nil },
		userData: func(_ context.Context, name string) (string, error) {
			given := central.At(central.UUIDs(name)[0], "spec", "resources", "guest_customization", "cloud_init", "user_data")
			raw, err := base64.StdEncoding.DecodeString(strings.Trim(given, `"`))
			return string(raw), err
		},
		remove: func(_ context.Context, name string) error {
			for _, uuid := range central.UUIDs(name) {
				central.Remove(uuid)
			}
			return nil
		},
		copy: func(_ context.Context, from, name string) (string, error) {
			uuid, err := central.Copy(central.UUIDs(from)[0], name)
			return "nutanix://" + uuid, err
		},
		left: func(_ context.Context, names []string) (found []string, err error) {
			for _, name := range names {
				found = append(found, central.UUIDs(name)...)
			}
			return found, nil
		},
		deny: func(_ context.Context, what denial) error {
			central.Deny(map[denial]string{denyCreates: http.MethodPost, denyDeletions: http.MethodDelete}[what])
			return nil
		},
		refusal: "ACCESS_DENIED", calls: made(&central.Calls),
		slow: func(on bool) { central.Slow(map[bool]time.Duration{true: 5 * time.Second, false: time.Second}[on]) },
	}
}
