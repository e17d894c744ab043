package azure

import (
	"fmt"
	"maps"
	"slices"
)

// treatment says how a field is converted.
type treatment string

const (
	taken   treatment = "taken"
	ignored treatment = "ignored"
	refused treatment = "refused"
)

// treated says where a field of Gardener's providerSpec goes, or why it is dropped.
type treated struct {
	as  treatment
	why string
}

// fields lists every field of machine-controller-manager-provider-azure's AzureProviderSpec by its
// JSON name. Objects are listed by their fields; the keys of tags are free.
var fields = map[string]treated{
	"location":                     {taken, "`location`"},
	"tags":                         {taken, "`tags`; those of the cluster and of the role are required, as there"},
	"resourceGroup":                {taken, "`resourceGroup`"},
	"subnetInfo.vnetName":          {taken, "`vnet`"},
	"subnetInfo.vnetResourceGroup": {taken, "`networkResourceGroup`; without it `resourceGroup`, as there"},
	"subnetInfo.subnetName":        {taken, "`subnet`"},
	"cloudConfiguration.name": {ignored,
		"the manager's environment says which cloud it is: `--engine-env=ARM_ENVIRONMENT=...`"},

	"properties.hardwareProfile.vmSize": {taken, "`vmSize`"},

	"properties.storageProfile.imageReference.id": {taken, "`image.resourceID`"},
	"properties.storageProfile.imageReference.urn": {taken,
		"`image.publisher`, `.offer`, `.sku`, `.version`"},
	"properties.storageProfile.imageReference.skipMarketplaceAgreement": {ignored,
		"agreements are never accepted on the customer's behalf"},
	"properties.storageProfile.imageReference.communityGalleryImageID": {refused,
		"the module takes images of the subscription and of the marketplace"},
	"properties.storageProfile.imageReference.sharedGalleryImageID": {refused,
		"the module takes images of the subscription and of the marketplace"},
	"properties.storageProfile.diskControllerType": {refused,
		"the provider of the module cannot set it"},

	"properties.storageProfile.osDisk.name": {ignored,
		"there, too: the disk has the Machine's name"},
	"properties.storageProfile.osDisk.caching": {taken, "`osDisk.cachingType`"},
	"properties.storageProfile.osDisk.diskSizeGB": {taken,
		"`osDisk.diskSizeGB`; required here"},
	"properties.storageProfile.osDisk.createOption": {taken,
		"`FromImage` is what is done; `Attach` is refused, since an instance is made from an image"},
	"properties.storageProfile.osDisk.managedDisk.id": {refused,
		"an instance is made from an image, not from a disk"},
	"properties.storageProfile.osDisk.managedDisk.storageAccountType": {taken,
		"`osDisk.managedDisk.storageAccountType`"},
	"properties.storageProfile.osDisk.managedDisk.securityProfile.securityEncryptionType": {taken,
		"`osDisk.managedDisk.securityProfile.securityEncryptionType`"},

	"properties.storageProfile.dataDisks[].name":               {taken, "with the number `dataDisks[].nameSuffix`"},
	"properties.storageProfile.dataDisks[].lun":                {taken, "`dataDisks[].lun`"},
	"properties.storageProfile.dataDisks[].caching":            {taken, "`dataDisks[].cachingType`"},
	"properties.storageProfile.dataDisks[].storageAccountType": {taken, "`dataDisks[].managedDisk.storageAccountType`"},
	"properties.storageProfile.dataDisks[].diskSizeGB": {taken,
		"`dataDisks[].diskSizeGB`; the disk is deleted with the instance, as there"},

	"properties.storageProfile.dataDisks[].imageRef.id":                       {refused, "data disks are made empty"},
	"properties.storageProfile.dataDisks[].imageRef.urn":                      {refused, "data disks are made empty"},
	"properties.storageProfile.dataDisks[].imageRef.skipMarketplaceAgreement": {ignored, "data disks are made empty"},
	"properties.storageProfile.dataDisks[].imageRef.communityGalleryImageID":  {refused, "data disks are made empty"},
	"properties.storageProfile.dataDisks[].imageRef.sharedGalleryImageID":     {refused, "data disks are made empty"},

	"properties.osProfile.computerName": {ignored,
		"there, too: the hostname is the Machine's name"},
	"properties.osProfile.adminUsername": {ignored,
		"the module's administrator is `capi`, as on OpenShift"},
	"properties.osProfile.adminPassword": {ignored, "there, too"},
	"properties.osProfile.customData": {ignored,
		"there, too: user data are those of the Secret"},
	"properties.osProfile.linuxConfiguration.disablePasswordAuthentication": {ignored,
		"the module decides it by whether there is a key"},
	"properties.osProfile.linuxConfiguration.ssh.publicKeys.path": {ignored,
		"the key is put where the administrator's keys are"},
	"properties.osProfile.linuxConfiguration.ssh.publicKeys.keyData": {taken, "`sshPublicKey`"},

	"properties.networkProfile.networkInterfaces.id":                 {ignored, "there, too"},
	"properties.networkProfile.networkInterfaces.properties.primary": {ignored, "there, too"},
	"properties.networkProfile.acceleratedNetworking":                {taken, "`acceleratedNetworking`"},

	"properties.availabilitySet.id": {taken,
		"`availabilitySet`, by its name; it must be in `resourceGroup`"},
	"properties.identityID": {taken, "`managedIdentity`"},
	"properties.zone":       {taken, "`zone`"},
	"properties.virtualMachineScaleSet.id": {refused,
		"the module has no scale sets; use a zone or an availability set"},
	"properties.diagnosticsProfile.enabled": {taken, "`diagnostics.boot.storageAccountType`"},
	"properties.diagnosticsProfile.storageURI": {taken,
		"`diagnostics.boot.customerManaged.storageAccountURI`"},
	"properties.machineSet.id": {taken, "`availabilitySet`, by its name"},
	"properties.machineSet.kind": {taken,
		"`availabilityset`; `vmo` is refused, since the module has no scale sets"},
	"properties.securityProfile.securityType":                   {taken, "`securityProfile.settings.securityType`"},
	"properties.securityProfile.uefiSettings.vtpmEnabled":       {taken, "`virtualizedTrustedPlatformModule`"},
	"properties.securityProfile.uefiSettings.secureBootEnabled": {taken, "`secureBoot`"},
	"properties.capacityReservation.capacityReservationGroupID": {taken, "`capacityReservationGroupID`"},
}

// check returns an error for the first field, by name, that is unknown or refused.
func check(spec map[string]any) error {
	for _, path := range leaves(spec, "") {
		known, ok := fields[path]
		switch {
		case !ok:
			return fmt.Errorf("%s: Gardener's provider for Azure has no such field", field(path))
		case known.as == refused:
			return fmt.Errorf("%s: not supported: %s", field(path), known.why)
		}
	}
	return nil
}

// leaves returns the paths of all set values, sorted. The entries of a list share one path.
func leaves(value any, path string) []string {
	switch of := value.(type) {
	case nil:
		return nil
	case map[string]any:
		if path == "tags" {
			return []string{path}
		}
		var found []string
		for _, name := range slices.Sorted(maps.Keys(of)) {
			at := name
			if path != "" {
				at = path + "." + name
			}
			found = append(found, leaves(of[name], at)...)
		}
		return found
	case []any:
		var found []string
		for _, entry := range of {
			found = append(found, leaves(entry, path+"[]")...)
		}
		return found
	default:
		if of == "" || of == false {
			return nil
		}
		return []string{path}
	}
}
