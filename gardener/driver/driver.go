// Package driver is a driver of Gardener's machine-controller-manager (MCM) that creates instances
// through machine-iac-operator. For each MCM Machine it maintains a Machine of machine.openshift.io
// and reads the state of the instance from it.
//
// Two kinds are called Machine. A "request" contains MCM's Machine; a "machine" is the operator's.
package driver

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/machine-iac/machine-iac-operator/gardener/azure"
)

const (
	// defaultCreationTimeout is MCM's own default of --machine-creation-timeout.
	defaultCreationTimeout = 20 * time.Minute
	// deletionWait bounds how long DeleteMachine waits for a destroy.
	deletionWait = 5 * time.Minute
	// abandonInterval is how often a wait checks whether MCM's Machine was deleted.
	abandonInterval = 15 * time.Second
)

// Options configures a Driver. Zero values select the defaults.
type Options struct {
	// CreationTimeout is MCM's --machine-creation-timeout, for Machines without their own; default
	// 20 minutes.
	CreationTimeout time.Duration
	// DeletionWait bounds how long DeleteMachine waits for a destroy; default 5 minutes.
	DeletionWait time.Duration
	// Clock measures timeouts; default is the system clock.
	Clock clock.WithTicker
}

// Driver implements MCM's interface.
type Driver struct {
	store
	options Options
}

var _ driver.Driver = &Driver{}

// New returns a driver that keeps its Machines in the cluster of the client.
func New(client dynamic.Interface, options Options) *Driver {
	if options.CreationTimeout <= 0 {
		options.CreationTimeout = defaultCreationTimeout
	}
	if options.DeletionWait <= 0 {
		options.DeletionWait = deletionWait
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Driver{store: store{client: client}, options: options}
}

// CreateMachine implements MCM's interface. It creates the Machine if missing, and waits until it
// has an instance.
func (d *Driver) CreateMachine(ctx context.Context,
	request *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	wanted, err := newDesired(request.Machine, request.MachineClass, request.Secret)
	if err != nil {
		return nil, err
	}
	ctx, cancel := d.whileWanted(ctx, request.Machine)
	defer cancel()
	written, err := d.apply(ctx, wanted)
	if err != nil {
		return nil, coded(ctx, err)
	}
	got, err := d.waitFor(ctx, written, (*machine).created)
	if err != nil {
		// MCM stores the state despite the error.
		return &driver.CreateMachineResponse{LastKnownState: got.known()}, coded(ctx, err)
	}
	return &driver.CreateMachineResponse{ProviderID: got.providerID(), NodeName: got.nodeName(),
		Addresses: got.Status.Addresses}, nil
}

// InitializeMachine implements MCM's interface. It waits until the instance matches the Machine.
func (d *Driver) InitializeMachine(ctx context.Context,
	request *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	found, err := d.own(ctx, request.Machine)
	if err != nil {
		return nil, err
	}
	ctx, cancel := d.whileWanted(ctx, request.Machine)
	defer cancel()
	got, err := d.waitFor(ctx, found, (*machine).initialized)
	if err != nil {
		return nil, failed(codes.Uninitialized, messageOf(coded(ctx, err)))
	}
	return &driver.InitializeMachineResponse{ProviderID: got.providerID(), NodeName: got.nodeName(),
		Addresses: got.Status.Addresses}, nil
}

// GetMachineStatus implements MCM's interface. It never waits.
func (d *Driver) GetMachineStatus(ctx context.Context,
	request *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	found, err := d.own(ctx, request.Machine)
	if err != nil {
		return nil, err
	}
	if made, err := found.created(); err != nil || !made {
		return nil, failed(codes.NotFound, fmt.Sprintf("Machine %s has no instance%s", found.Name, found.because()))
	}
	response := &driver.GetMachineStatusResponse{ProviderID: found.providerID(), NodeName: found.nodeName(),
		Addresses: found.Status.Addresses}
	if ready, err := found.initialized(); request.Machine.Labels[mcm.NodeLabelKey] == "" && (err != nil || !ready) {
		// MCM reads the response despite the error.
		return response, failed(codes.Uninitialized, fmt.Sprintf("the instance of Machine %s does not match its class yet%s",
			found.Name, found.because()))
	}
	return response, nil
}

// DeleteMachine implements MCM's interface. It releases the Machine and waits until the instance is
// gone. It does not wait for an orphan without an MCM Machine.
func (d *Driver) DeleteMachine(ctx context.Context,
	request *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	found, err := d.get(ctx, request.Machine.Namespace, request.Machine.Name)
	if err != nil {
		return nil, coded(ctx, err)
	}
	isOrphan := request.Machine.UID == ""
	if isOrphan && (found == nil || found.providerID() != request.Machine.Spec.ProviderID) {
		// A Machine of that name, if any, has another instance. The manager removes instances
		// without a Machine.
		if err := validateClass(request.MachineClass); err != nil {
			return nil, err
		}
		return nil, missing(request)
	}
	if found == nil {
		return nil, missing(request)
	}
	if request.MachineClass != nil && request.Secret != nil {
		if err := d.refreshCredentials(ctx, request.MachineClass, request.Secret); err != nil {
			return nil, coded(ctx, err)
		}
	}
	if err := d.release(ctx, found); err != nil {
		return nil, coded(ctx, err)
	}
	if isOrphan {
		return &driver.DeleteMachineResponse{}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, d.options.DeletionWait, errDeletionWait)
	defer cancel()
	if last, err := d.waitUntilGone(ctx, found); err != nil {
		return &driver.DeleteMachineResponse{LastKnownState: last.known()}, coded(ctx, err)
	}
	return &driver.DeleteMachineResponse{}, nil
}

// missing returns the result for a missing Machine: the instance is gone, unless another provider
// created it and it would be left behind.
func missing(request *driver.DeleteMachineRequest) error {
	id := request.Machine.Spec.ProviderID
	if request.MachineClass != nil && request.MachineClass.Provider == azure.Provider && id != "" && !azure.Made(id) {
		return failed(codes.FailedPrecondition,
			fmt.Sprintf("Gardener's provider for Azure created instance %s of Machine %s: delete it with that provider, or "+
				"remove the finalizers of the Machine "+
				"and delete the virtual machine yourself", id, request.Machine.Name))
	}
	return failed(codes.NotFound, "there is no Machine "+request.Machine.Name)
}

// own returns the Machine that belongs to an MCM Machine. It returns NotFound if there is none, or
// one of an earlier Machine of that name.
func (d *Driver) own(ctx context.Context, of *mcm.Machine) (*machine, error) {
	found, err := d.get(ctx, of.Namespace, of.Name)
	switch {
	case err != nil:
		return nil, coded(ctx, err)
	case found == nil:
		return nil, failed(codes.NotFound, "there is no Machine "+of.Name)
	case !found.belongsTo(of) || found.DeletionTimestamp != nil:
		return nil, failed(codes.NotFound, fmt.Sprintf("Machine %s belongs to an earlier Machine, or is being deleted",
			of.Name))
	}
	return found, nil
}

// The ends of a wait, with the messages that MCM shows.
var (
	errCreationTimeout = errors.New("the Machine has no instance yet, and its creation timeout has expired")
	errDeletionWait    = errors.New("the instance is still being removed")
	errUnwanted        = errors.New("the Machine was deleted while its instance was being created")
)

// whileWanted returns a context that ends at the Machine's creation timeout, or when the Machine is
// deleted.
func (d *Driver) whileWanted(ctx context.Context, of *mcm.Machine) (context.Context, context.CancelFunc) {
	left := of.CreationTimestamp.Add(d.creationTimeout(of)).Sub(d.options.Clock.Now())
	// One second more, so that MCM's own timeout has expired as well. A Machine that is already
	// late gets one check.
	ctx, stop := context.WithTimeoutCause(ctx, max(left, 0)+time.Second, errCreationTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := d.options.Clock.NewTicker(abandonInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
			}
			if d.deleted(ctx, of) {
				cancel(errUnwanted)
			}
		}
	}()
	return ctx, func() { cancel(nil); stop() }
}

func (d *Driver) creationTimeout(of *mcm.Machine) time.Duration {
	if of.Spec.MachineConfiguration != nil && of.Spec.MachineCreationTimeout != nil {
		return of.Spec.MachineCreationTimeout.Duration
	}
	return d.options.CreationTimeout
}

// ListMachines implements MCM's interface. It returns the Machines of a class that have an instance
// and no run in progress. A Machine whose owner was removed by force is deleted by Kubernetes'
// garbage collection and waits for MCM's. MCM deletes listed instances that it does not own at
// once. So instances without a Machine, which cannot be proven to belong to this cluster, are left
// to the manager.
func (d *Driver) ListMachines(ctx context.Context,
	request *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	if err := validateClass(request.MachineClass); err != nil {
		return nil, err
	}
	found, err := d.ofClass(ctx, request.MachineClass)
	if err != nil {
		return nil, coded(ctx, err)
	}
	listed := map[string]string{}
	for _, m := range found {
		if made, err := m.created(); err == nil && made && (m.DeletionTimestamp == nil || m.held()) && !m.changing() {
			listed[m.providerID()] = m.Name
		}
	}
	return &driver.ListMachinesResponse{MachineList: listed}, nil
}

// GetVolumeIDs implements MCM's interface.
func (d *Driver) GetVolumeIDs(_ context.Context,
	request *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	ids := []string{}
	for _, spec := range request.PVSpecs {
		if id := volumeID(spec); id != "" {
			ids = append(ids, id)
		}
	}
	return &driver.GetVolumeIDsResponse{VolumeIDs: ids}, nil
}

// sharingDrivers are CSI drivers whose volumes are mounted, not attached. MCM would wait in vain for
// them to be attached elsewhere. Some prefix their names with a namespace.
var sharingDrivers = []string{
	"efs.csi.aws.com", "fsx.csi.aws.com", "s3.csi.aws.com", "file.csi.azure.com", "blob.csi.azure.com",
	"filestore.csi.storage.gke.io", "gcsfuse.csi.storage.gke.io", "manila.csi.openstack.org",
	"nasplugin.csi.alibabacloud.com", "ossplugin.csi.alibabacloud.com", "cephfs.csi.ceph.com", "nfs.csi.ceph.com",
	"nfs.csi.k8s.io", "smb.csi.k8s.io",
}

// volumeID returns what a volume is called in Node.status.volumesAttached, or "" if it is not
// attached to an instance. MCM takes it for a regular expression. Kubernetes translates volumes of
// its former drivers into those of CSI drivers, whose handles contain the IDs below.
func volumeID(spec *corev1.PersistentVolumeSpec) string {
	var id string
	switch {
	case spec == nil:
	case spec.CSI != nil:
		shared := func(driver string) bool { return strings.HasSuffix(spec.CSI.Driver, driver) }
		if !slices.ContainsFunc(sharingDrivers, shared) {
			id = spec.CSI.VolumeHandle
		}
	case spec.AWSElasticBlockStore != nil:
		id = path.Base(spec.AWSElasticBlockStore.VolumeID) // aws://zone/vol-...
	case spec.AzureDisk != nil:
		id = spec.AzureDisk.DiskName
	case spec.GCEPersistentDisk != nil:
		id = spec.GCEPersistentDisk.PDName
	case spec.Cinder != nil:
		id = spec.Cinder.VolumeID
	case spec.VsphereVolume != nil:
		id = spec.VsphereVolume.VolumePath
	}
	return regexp.QuoteMeta(id)
}
