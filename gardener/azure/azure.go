// Package azure converts the providerSpec of Gardener's provider for Azure to the module azure's
// AzureMachineProviderSpec. MachineClasses with "provider: Azure" can be used unchanged.
package azure

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Provider is spec.provider of the MachineClasses of Gardener's provider for Azure.
const Provider = "Azure"

// requiredTags are the tag prefixes that Gardener's provider requires: it finds its instances by
// them.
var requiredTags = []string{"kubernetes.io-cluster-", "kubernetes.io-role-"}

// Made reports whether the module created the instance with a providerID. Gardener's provider IDs
// name the location and the virtual machine.
func Made(providerID string) bool {
	return strings.HasPrefix(strings.ToLower(providerID), "azure:///subscriptions/")
}

// ProviderSpec converts a Gardener providerSpec to an AzureMachineProviderSpec. Errors name the
// field.
func ProviderSpec(spec map[string]any) (map[string]any, error) {
	if err := check(spec); err != nil {
		return nil, err
	}
	g := getter{spec}
	out := map[string]any{"apiVersion": "machine.openshift.io/v1beta1", "kind": "AzureMachineProviderSpec"}
	for field, from := range direct {
		if text := g.text(from); text != "" {
			set(out, field, text)
		}
	}
	for _, step := range []func(getter, map[string]any) error{image, osDisk, dataDisks, access, network, placement,
		security, diagnostics} {
		if err := step(g, out); err != nil {
			return nil, err
		}
	}
	tags, err := tagsOf(g)
	if err != nil {
		return nil, err
	}
	out["tags"] = tags
	return out, nil
}

// direct maps fields that are copied unchanged to their sources.
var direct = map[string]string{
	"location":                              "location",
	"resourceGroup":                         "resourceGroup",
	"vnet":                                  "subnetInfo.vnetName",
	"subnet":                                "subnetInfo.subnetName",
	"vmSize":                                "properties.hardwareProfile.vmSize",
	"managedIdentity":                       "properties.identityID",
	"capacityReservationGroupID":            "properties.capacityReservation.capacityReservationGroupID",
	"osDisk.cachingType":                    "properties.storageProfile.osDisk.caching",
	"osDisk.managedDisk.storageAccountType": "properties.storageProfile.osDisk.managedDisk.storageAccountType",
	"osDisk.managedDisk.securityProfile.securityEncryptionType": "properties.storageProfile.osDisk.managedDisk.securityProfile.securityEncryptionType",
}

func image(g getter, out map[string]any) error {
	const reference = "properties.storageProfile.imageReference"
	id, urn := g.text(reference+".id"), g.text(reference+".urn")
	switch {
	case id != "" && urn != "":
		return fmt.Errorf("%s: id and urn are mutually exclusive", field(reference))
	case id != "":
		set(out, "image.resourceID", id)
	case urn != "":
		parts := strings.Split(urn, ":")
		if len(parts) != 4 || slices.Contains(parts, "") {
			return fmt.Errorf("%s is %q: must be publisher:offer:sku:version", field(reference+".urn"), urn)
		}
		for i, name := range []string{"publisher", "offer", "sku", "version"} {
			set(out, "image."+name, parts[i])
		}
	default:
		return fmt.Errorf("%s: the image is missing: set id or urn", field(reference))
	}
	return nil
}

func osDisk(g getter, out map[string]any) error {
	const disk = "properties.storageProfile.osDisk"
	size, err := g.number(disk + ".diskSizeGB")
	if err != nil {
		return err
	}
	if size == 0 {
		return fmt.Errorf("%s: required, because the module has no default", field(disk+".diskSizeGB"))
	}
	set(out, "osDisk.osType", "Linux")
	set(out, "osDisk.diskSizeGB", size)
	if option := g.text(disk + ".createOption"); option != "" && option != "FromImage" {
		return fmt.Errorf("%s is %q: only FromImage is supported", field(disk+".createOption"), option)
	}
	return nil
}

func dataDisks(g getter, out map[string]any) error {
	const path = "properties.storageProfile.dataDisks"
	list, _ := g.value(path).([]any)
	var disks []any
	for i, entry := range list {
		disk, ok := entry.(map[string]any)
		if !ok {
			return fmt.Errorf("%s[%d]: must be an object", field(path), i)
		}
		of := getter{disk}
		lun, err := of.number("lun")
		if err != nil {
			return fmt.Errorf("%s[%d].lun: %w", field(path), i, err)
		}
		size, err := of.number("diskSizeGB")
		if err != nil || size == 0 {
			return fmt.Errorf("%s[%d].diskSizeGB: must be a size in GiB", field(path), i)
		}
		// Gardener's provider names a disk by its name and number.
		suffix := strconv.FormatInt(lun, 10) + "-data-disk"
		if name := of.text("name"); name != "" {
			suffix = name + "-" + suffix
		}
		made := map[string]any{"nameSuffix": suffix, "lun": lun, "diskSizeGB": size, "deletionPolicy": "Delete"}
		if caching := of.text("caching"); caching != "" {
			made["cachingType"] = caching
		}
		if kind := of.text("storageAccountType"); kind != "" {
			made["managedDisk"] = map[string]any{"storageAccountType": kind}
		}
		disks = append(disks, made)
	}
	if len(disks) > 0 {
		out["dataDisks"] = disks
	}
	return nil
}

// access sets the SSH key. The module reads it in base64, as OpenShift writes it.
func access(g getter, out map[string]any) error {
	if key := g.text("properties.osProfile.linuxConfiguration.ssh.publicKeys.keyData"); key != "" {
		out["sshPublicKey"] = base64.StdEncoding.EncodeToString([]byte(key))
	}
	return nil
}

func network(g getter, out map[string]any) error {
	group := g.text("subnetInfo.vnetResourceGroup")
	if group == "" {
		group = g.text("resourceGroup")
	}
	if group != "" {
		out["networkResourceGroup"] = group
	}
	if g.flag("properties.networkProfile.acceleratedNetworking") {
		out["acceleratedNetworking"] = true
	}
	return nil
}

func placement(g getter, out map[string]any) error {
	if g.value("properties.zone") != nil {
		zone, err := g.number("properties.zone")
		if err != nil {
			return err
		}
		out["zone"] = strconv.FormatInt(zone, 10)
	}
	group := g.text("properties.availabilitySet.id")
	if kind := g.text("properties.machineSet.kind"); kind != "" {
		if kind != "availabilityset" {
			return fmt.Errorf("%s is %q: the module does not support scale sets; use a zone or an availability set",
				field("properties.machineSet.kind"), kind)
		}
		group = g.text("properties.machineSet.id")
	}
	if group != "" { // the module looks up the name in the virtual machine's resource group
		out["availabilitySet"] = group[strings.LastIndex(group, "/")+1:]
	}
	return nil
}

func security(g getter, out map[string]any) error {
	const profile = "properties.securityProfile"
	kind := g.text(profile + ".securityType")
	if kind == "" {
		return nil
	}
	settings := map[string]string{"ConfidentialVM": "confidentialVM", "TrustedLaunch": "trustedLaunch"}[kind]
	if settings == "" {
		return fmt.Errorf("%s is %q: must be ConfidentialVM or TrustedLaunch", field(profile+".securityType"), kind)
	}
	set(out, "securityProfile.settings.securityType", kind)
	uefi := "securityProfile.settings." + settings + ".uefiSettings."
	set(out, uefi+"secureBoot", enabled(g.flag(profile+".uefiSettings.secureBootEnabled")))
	set(out, uefi+"virtualizedTrustedPlatformModule", enabled(g.flag(profile+".uefiSettings.vtpmEnabled")))
	return nil
}

func diagnostics(g getter, out map[string]any) error {
	const profile = "properties.diagnosticsProfile"
	if !g.flag(profile + ".enabled") {
		return nil
	}
	if address := g.text(profile + ".storageURI"); address != "" {
		set(out, "diagnostics.boot.storageAccountType", "CustomerManaged")
		set(out, "diagnostics.boot.customerManaged.storageAccountURI", address)
		return nil
	}
	set(out, "diagnostics.boot.storageAccountType", "AzureManaged")
	return nil
}

func enabled(on bool) string {
	if on {
		return "Enabled"
	}
	return "Disabled"
}

// tagsOf returns the tags, which must include those of the cluster and the role.
func tagsOf(g getter) (map[string]any, error) {
	tags, _ := g.value("tags").(map[string]any)
	for _, prefix := range requiredTags {
		has := slices.ContainsFunc(slices.Collect(maps.Keys(tags)),
			func(key string) bool { return strings.HasPrefix(key, prefix) })
		if !has {
			return nil, fmt.Errorf("%s: a tag with the prefix %q is missing: Gardener finds its instances by it", field("tags"),
				prefix)
		}
	}
	return tags, nil
}

// field formats a path for messages.
func field(path string) string { return "providerSpec." + path }

// set sets the value at a path.
func set(into map[string]any, path string, value any) {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		inner, ok := into[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			into[name] = inner
		}
		into = inner
	}
	into[names[len(names)-1]] = value
}

// getter reads values by path. check has validated the field names, but not their types.
type getter struct{ object map[string]any }

func (g getter) value(path string) any {
	var at any = g.object
	for name := range strings.SplitSeq(path, ".") {
		object, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = object[name]
	}
	return at
}

func (g getter) text(path string) string {
	text, _ := g.value(path).(string)
	return text
}

func (g getter) flag(path string) bool {
	on, _ := g.value(path).(bool)
	return on
}

// number returns an integer, or zero if it is missing.
func (g getter) number(path string) (int64, error) {
	switch number := g.value(path).(type) {
	case nil:
		return 0, nil
	case int64:
		return number, nil
	case float64:
		if whole := int64(number); float64(whole) == number {
			return whole, nil
		}
	}
	return 0, fmt.Errorf("%s is %v: must be an integer", field(path), g.value(path))
}
