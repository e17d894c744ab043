package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/machine-iac/machine-iac-operator/api/v1alpha1"
)

const (
	fieldGroup    = "group"
	fieldResource = "resource"
	fieldName     = "name"
)

// AddressesAnnotation contains the addresses that a Machine got from pools, as JSON. The operator writes it
// before it creates the instance, and the instance keeps them.
const AddressesAnnotation = "machine-iac.io/addresses"

// ErrNoAddress means that a Machine lacks an address from one of its pools. It may get one later.
var ErrNoAddress = errors.New("no address was allocated from a pool")

// AddressPool is a pool from which a device takes one address.
type AddressPool struct {
	// Device is the index of the device, and Index that of the pool in its list.
	Device int `json:"device"`
	Index  int `json:"pool"`
	// Group, Resource and Name identify the pool's object. Claims call the resource its kind.
	Group    string `json:"group"`
	Resource string `json:"resource"`
	Name     string `json:"name"`
}

// String returns a description of the pool.
func (p AddressPool) String() string {
	return fmt.Sprintf("%s %s of %s, of network device %d", p.Resource, p.Name, p.Group, p.Device)
}

// PoolAddress is an address that a Machine got from a pool.
type PoolAddress struct {
	AddressPool
	// Address includes the prefix length: 192.168.1.10/24.
	Address string `json:"address"`
	// Gateway is empty if the pool has none.
	Gateway string `json:"gateway,omitempty"`
}

// NewPoolAddress returns the address of a pool, or an error if it is invalid.
func NewPoolAddress(pool AddressPool, address string, prefix int64, gateway string) (PoolAddress, error) {
	given := PoolAddress{AddressPool: pool, Address: fmt.Sprintf("%s/%d", address, prefix), Gateway: gateway}
	return given, given.check()
}

func (a PoolAddress) check() error {
	if _, err := netip.ParsePrefix(a.Address); err != nil {
		return fmt.Errorf("invalid address %q: must have a prefix length", a.Address)
	}
	if a.Gateway == "" {
		return nil
	}
	if _, err := netip.ParseAddr(a.Gateway); err != nil {
		return fmt.Errorf("invalid gateway %q of the address %s", a.Gateway, a.Address)
	}
	return nil
}

// AddressPools returns the pools in a value of the variable provider_spec, by device. If claims is nil,
// there are none.
func AddressPools(claims *v1alpha1.ModuleAddressClaims, providerSpec cty.Value) []AddressPool {
	if claims == nil {
		return nil
	}
	var pools []AddressPool
	for i, device := range elements(valueAt(providerSpec, claims.Devices)) {
		for j, pool := range elements(valueAt(device, claims.Pools)) {
			pools = append(pools,
				AddressPool{Device: i, Index: j, Group: textAt(pool, fieldGroup), Resource: textAt(pool, fieldResource),
					Name: textAt(pool, fieldName)})
		}
	}
	return pools
}

// FormatAddresses encodes addresses for the annotation of a Machine.
func FormatAddresses(given []PoolAddress) (string, error) {
	raw, err := json.Marshal(given)
	if err != nil {
		return "", fmt.Errorf("writing annotation %s: %w", AddressesAnnotation, err)
	}
	return string(raw), nil
}

// ParseAddresses decodes the addresses in the annotation of a Machine. An empty annotation has none.
func ParseAddresses(annotation string) ([]PoolAddress, error) {
	if annotation == "" {
		return nil, nil
	}
	var given []PoolAddress
	err := json.Unmarshal([]byte(annotation), &given)
	for i := 0; err == nil && i < len(given); i++ {
		err = given[i].check()
	}
	if err != nil {
		return nil, fmt.Errorf("reading annotation %s: %w; remove it to have the addresses read from the "+
			"IPAddressClaims again", AddressesAnnotation, err)
	}
	return given, nil
}

// FindAddress returns the address from a pool.
func FindAddress(given []PoolAddress, pool AddressPool) (PoolAddress, bool) {
	for _, one := range given {
		if one.AddressPool == pool {
			return one, true
		}
	}
	return PoolAddress{}, false
}

// ApplyAddresses adds the addresses from its pools to a value of the variable provider_spec. It returns the
// value unchanged if it names no pools. The error wraps [ErrNone] if an address is missing.
func ApplyAddresses(claims *v1alpha1.ModuleAddressClaims, providerSpec cty.Value,
	given []PoolAddress) (cty.Value, error) {
	pools := AddressPools(claims, providerSpec)
	if len(pools) == 0 {
		return providerSpec, nil
	}
	byDevice := map[int][]PoolAddress{}
	for _, pool := range pools {
		one, ok := FindAddress(given, pool)
		if !ok {
			return cty.NilVal, fmt.Errorf("%w: %s", ErrNoAddress, pool)
		}
		byDevice[pool.Device] = append(byDevice[pool.Device], one)
	}
	devices := elements(valueAt(providerSpec, claims.Devices))
	for i, device := range devices {
		devices[i] = withPoolAddresses(claims, device, byDevice[i])
	}
	return with(providerSpec, strings.Split(claims.Devices, "."), cty.ListVal(devices)), nil
}

// withAddresses appends the addresses to those of a device.
func withPoolAddresses(claims *v1alpha1.ModuleAddressClaims, device cty.Value, given []PoolAddress) cty.Value {
	if len(given) == 0 {
		return device
	}
	addresses := elements(valueAt(device, claims.Addresses))
	var gateway string
	for _, one := range given {
		addresses = append(addresses, cty.StringVal(one.Address))
		if one.Gateway != "" {
			gateway = one.Gateway
		}
	}
	device = with(device, []string{claims.Addresses}, cty.ListVal(addresses))
	if gateway != "" && claims.Gateway != "" {
		device = with(device, []string{claims.Gateway}, cty.StringVal(gateway))
	}
	return device
}

// with returns an object with a different value at an existing path of attributes.
func with(object cty.Value, path []string, value cty.Value) cty.Value {
	if len(path) == 0 {
		return value
	}
	attributes := object.AsValueMap()
	attributes[path[0]] = with(attributes[path[0]], path[1:], value)
	return cty.ObjectVal(attributes)
}

// elements returns the elements of a list, or none if it is null or unknown.
func elements(list cty.Value) []cty.Value {
	if !list.IsKnown() || list.IsNull() || !list.CanIterateElements() {
		return nil
	}
	return list.AsValueSlice()
}

// text returns a string attribute, or "" if it is null or unknown.
func textAt(object cty.Value, name string) string {
	value := valueAt(object, name)
	if !value.IsKnown() || value.IsNull() || value.Type() != cty.String {
		return ""
	}
	return value.AsString()
}
