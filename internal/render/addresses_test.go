package render_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
	"github.com/machine-iac/machine-iac-operator/internal/render"
)

var claims = &v1alpha1.ModuleAddressClaims{Devices: "network.devices", Pools: "addressesFromPools",
	Addresses: "ipAddrs", Gateway: "gateway"}

var providerSpecType = cty.Object(map[string]cty.Type{
	"template": cty.String,
	"network": cty.Object(map[string]cty.Type{"devices": cty.List(cty.Object(map[string]cty.Type{
		"networkName": cty.String, "gateway": cty.String, "ipAddrs": cty.List(cty.String),
		"addressesFromPools": cty.List(
			cty.Object(map[string]cty.Type{"group": cty.String, "resource": cty.String, "name": cty.String})),
	}))}),
})

const twoDevices = `{"template":"rhcos","network":{"devices":[
	{"networkName":"a","gateway":"10.0.0.254","ipAddrs":["10.0.0.9/24"],"addressesFromPools":[
		{"group":"ipam.example.com","resource":"IPPool","name":"v4"},{"group":"ipam.example.com","resource":"IPPool","name":"v6"}]},
	{"networkName":"b","gateway":"","ipAddrs":null,"addressesFromPools":null}]}}`

func valueOf(t *testing.T, raw string) cty.Value {
	t.Helper()
	value, err := ctyjson.Unmarshal([]byte(raw), providerSpecType)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func pool(index int, name string) render.AddressPool {
	return render.AddressPool{Index: index, Group: "ipam.example.com", Resource: "IPPool", Name: name}
}

func TestAddressesOfPoolsAreAddedToTheirDevice(t *testing.T) {
	value := valueOf(t, twoDevices)
	if diff := cmp.Diff([]render.AddressPool{pool(0, "v4"), pool(1, "v6")},
		render.AddressPools(claims, value)); diff != "" {
		t.Errorf("pools (-want +got):\n%s", diff)
	}
	given := []render.PoolAddress{
		{AddressPool: pool(1, "v6"), Address: "fd00::10/64"},
		{AddressPool: pool(0, "v4"), Address: "10.0.0.10/24", Gateway: "10.0.0.1"},
	}
	applied, err := render.ApplyAddresses(claims, value, given)
	if err != nil {
		t.Fatal(err)
	}
	want := valueOf(t,
		strings.Replace(strings.Replace(twoDevices, `"10.0.0.9/24"`, `"10.0.0.9/24","10.0.0.10/24","fd00::10/64"`, 1),
			"10.0.0.254", "10.0.0.1", 1))
	if !applied.RawEquals(want) {
		t.Errorf("%#v; want the addresses behind the device's own, in the order of its pools, and the pool's gateway",
			applied)
	}
}

func TestAPoolThatGaveNoAddressIsNamed(t *testing.T) {
	for name, given := range map[string][]render.PoolAddress{
		"none at all":    nil,
		"one is missing": {{AddressPool: pool(0, "v4"), Address: "10.0.0.10/24"}},
		"of a pool that the providerSpec named before": {{AddressPool: pool(0, "v4"), Address: "10.0.0.10/24"},
			{AddressPool: pool(1, "other"), Address: "fd00::10/64"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render.ApplyAddresses(claims, valueOf(t, twoDevices), given)
			if !errors.Is(err, render.ErrNoAddress) || !strings.Contains(err.Error(), "of network device 0") {
				t.Errorf("error %v; want ErrNone with the pool", err)
			}
		})
	}
}

func TestWhatTakesNothingFromPoolsStaysAsItIs(t *testing.T) {
	without := valueOf(t,
		`{"template":"rhcos","network":{"devices":[{"networkName":"a","gateway":"","ipAddrs":[],"addressesFromPools":[]}]}}`)
	for name, one := range map[string]struct {
		claims *v1alpha1.ModuleAddressClaims
		value  cty.Value
	}{
		"no pools":                    {claims, without},
		"a module without claims":     {nil, valueOf(t, twoDevices)},
		"a providerSpec without them": {claims, cty.EmptyObjectVal},
		"an unknown one":              {claims, cty.DynamicVal},
	} {
		t.Run(name, func(t *testing.T) {
			applied, err := render.ApplyAddresses(one.claims, one.value, nil)
			if err != nil || !applied.RawEquals(one.value) {
				t.Errorf("%#v, %v; want it unchanged", applied, err)
			}
		})
	}
}

func TestTheAnnotationHoldsAddresses(t *testing.T) {
	given := []render.PoolAddress{{AddressPool: pool(0, "v4"), Address: "10.0.0.10/24", Gateway: "10.0.0.1"}}
	written, err := render.FormatAddresses(given)
	if err != nil {
		t.Fatal(err)
	}
	read, err := render.ParseAddresses(written)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(given, read); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, wrong := range []string{"no JSON", `[{"address":"10.0.0.10"}]`,
		`[{"address":"10.0.0.10/24","gateway":"x"}]`} {
		if _, err := render.ParseAddresses(wrong); err == nil ||
			!strings.Contains(err.Error(), render.AddressesAnnotation) {
			t.Errorf("%s: error %v; want one that names the annotation", wrong, err)
		}
	}
}

func TestAnAddressOfAPoolMustBeOne(t *testing.T) {
	if given, err := render.NewPoolAddress(pool(0, "v4"), "10.0.0.10", 24, "10.0.0.1"); err != nil ||
		given.Address != "10.0.0.10/24" {
		t.Errorf("%+v, %v", given, err)
	}
	for name, one := range map[string]struct {
		address, gateway string
		prefix           int64
	}{
		"no address": {"", "", 24}, "too long a prefix": {"10.0.0.10", "", 33},
		"a gateway that is a name": {"10.0.0.10", "router", 24},
	} {
		if _, err := render.NewPoolAddress(pool(0, "v4"), one.address, one.prefix, one.gateway); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
