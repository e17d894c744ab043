// Package driver is a driver of Gardener's machine-controller-manager (MCM) that has instances made by machine-iac-operator. For each Machine
// of MCM it keeps a Machine of machine.openshift.io, and reads from it what became of the instance.
//
// Two kinds are called Machine here. A "request" is what MCM hands over, with MCM's Machine in it; a "machine" is the operator's.
package driver

import (
	"context"
	"errors"
	"fmt"
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
	// deletionWait is how long DeleteMachine waits for the end of a destroy.
	deletionWait = 5 * time.Minute
	// abandonInterval is how often a wait looks whether MCM's Machine was deleted meanwhile.
	abandonInterval = 15 * time.Second
)

// Options are what a driver may be given. Zero values take the defaults named.
type Options struct {
	// CreationTimeout is MCM's --machine-creation-timeout, for Machines without one of their own; 20 minutes.
	CreationTimeout time.Duration
	// DeletionWait is how long DeleteMachine waits for the end of a destroy; 5 minutes.
	DeletionWait time.Duration
	// Clock is what time-outs are measured with; the system's.
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

// CreateMachine implements MCM's interface. It makes the Machine where there is none, and waits until it has an instance.
func (d *Driver) CreateMachine(ctx context.Context, request *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
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
		return &driver.CreateMachineResponse{LastKnownState: got.known()}, coded(ctx, err) // MCM keeps the state beside the error
	}
	return &driver.CreateMachineResponse{ProviderID: got.providerID(), NodeName: got.nodeName(), Addresses: got.Status.Addresses}, nil
}

// InitializeMachine implements MCM's interface. It waits until the instance is as the Machine wants it.
func (d *Driver) InitializeMachine(ctx context.Context, request *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
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
	return &driver.InitializeMachineResponse{ProviderID: got.providerID(), NodeName: got.nodeName(), Addresses: got.Status.Addresses}, nil
}

// GetMachineStatus implements MCM's interface. It never waits.
func (d *Driver) GetMachineStatus(ctx context.Context, request *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	found, err := d.own(ctx, request.Machine)
	if err != nil {
		return nil, err
	}
	if made, err := found.created(); err != nil || !made {
		return nil, failed(codes.NotFound, fmt.Sprintf("Machine %s has no instance%s", found.Name, found.because()))
	}
	response := &driver.GetMachineStatusResponse{ProviderID: found.providerID(), NodeName: found.nodeName(), Addresses: found.Status.Addresses}
	if ready, err := found.initialized(); request.Machine.Labels[mcm.NodeLabelKey] == "" && (err != nil || !ready) {
		// MCM reads the response beside the error.
		return response, failed(codes.Uninitialized, fmt.Sprintf("the instance of Machine %s is not yet as its class says%s", found.Name, found.because()))
	}
	return response, nil
}

// DeleteMachine implements MCM's interface. It lets the Machine go, and waits until the instance is gone with it. An orphan, which has no
// Machine of MCM, is not waited for.
func (d *Driver) DeleteMachine(ctx context.Context, request *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	found, err := d.get(ctx, request.Machine.Namespace, request.Machine.Name)
	if err != nil {
		return nil, coded(ctx, err)
	}
	isOrphan := request.Machine.UID == ""
	if isOrphan && (found == nil || found.providerID() != request.Machine.Spec.ProviderID) {
		// The Machine of that name, if there is one, has another instance.
		return d.deleteOrphan(ctx, request)
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

// deleteOrphan has an instance removed that no Machine has.
func (d *Driver) deleteOrphan(ctx context.Context, request *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if err := validateClass(request.MachineClass); err != nil {
		return nil, err
	}
	listed, err := d.destroyOrphan(ctx, request.MachineClass, request.Machine.Spec.ProviderID)
	if err != nil {
		return nil, coded(ctx, err)
	}
	if !listed {
		return nil, missing(request)
	}
	return &driver.DeleteMachineResponse{}, nil
}

// missing returns that there is no Machine to delete: the instance is gone, unless another provider has made it, which would leave it behind.
func missing(request *driver.DeleteMachineRequest) error {
	id := request.Machine.Spec.ProviderID
	if request.MachineClass != nil && request.MachineClass.Provider == azure.Provider && id != "" && !azure.Made(id) {
		return failed(codes.FailedPrecondition, fmt.Sprintf("Gardener's provider for Azure has made the instance %s of Machine %s: delete it with that provider, or remove the finalizers of the Machine "+
			"and delete the virtual machine yourself", id, request.Machine.Name))
	}
	return failed(codes.NotFound, "there is no Machine "+request.Machine.Name)
}

// own returns the Machine that belongs to one of MCM; a NotFound where there is none, or one of an earlier Machine of that name.
func (d *Driver) own(ctx context.Context, of *mcm.Machine) (*machine, error) {
	found, err := d.get(ctx, of.Namespace, of.Name)
	switch {
	case err != nil:
		return nil, coded(ctx, err)
	case found == nil:
		return nil, failed(codes.NotFound, "there is no Machine "+of.Name)
	case !found.belongsTo(of) || found.DeletionTimestamp != nil:
		return nil, failed(codes.NotFound, fmt.Sprintf("Machine %s is one of an earlier Machine, or is being deleted", of.Name))
	}
	return found, nil
}

// The ends of a wait, each with what MCM shows of it.
var (
	errCreationTimeout = errors.New("the Machine has no instance yet, and its creation time-out is over")
	errDeletionWait    = errors.New("the instance is still being removed")
	errUnwanted        = errors.New("the Machine was deleted while its instance was being made")
)

// whileWanted returns a context that ends at the Machine's creation time-out, and when the Machine is deleted.
func (d *Driver) whileWanted(ctx context.Context, of *mcm.Machine) (context.Context, context.CancelFunc) {
	left := of.CreationTimestamp.Add(d.creationTimeout(of)).Sub(d.options.Clock.Now())
	// A second more, so that MCM finds its own time-out over too. A Machine that is late already gets one look at what became of it.
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

// ListMachines implements MCM's interface: the Machines of a class that have an instance, and that nothing is being done about; and the instances
// of the cluster that belong to nobody, where the class's module can list them. A Machine whose owner was removed by force is deleted by Kubernetes'
// garbage collection, and waits for MCM's.
func (d *Driver) ListMachines(ctx context.Context, request *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
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
	orphans, err := d.orphans(ctx, request.MachineClass.Namespace, found)
	if err != nil {
		return nil, coded(ctx, err)
	}
	for _, one := range orphans {
		listed[one.ProviderID] = one.Name
	}
	return &driver.ListMachinesResponse{MachineList: listed}, nil
}

// GetVolumeIDs implements MCM's interface.
func (d *Driver) GetVolumeIDs(_ context.Context, request *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	ids := []string{}
	for _, spec := range request.PVSpecs {
		if id := volumeID(spec); id != "" {
			ids = append(ids, id)
		}
	}
	return &driver.GetVolumeIDsResponse{VolumeIDs: ids}, nil
}

// attachingDrivers are the CSI drivers whose volumes are attached to an instance. MCM waits for volumes to be detached; those of a file
// share never are.
var attachingDrivers = map[string]bool{
	"ebs.csi.aws.com": true, "disk.csi.azure.com": true, "pd.csi.storage.gke.io": true, "cinder.csi.openstack.org": true,
	"csi.vsphere.vmware.com": true, "csi.nutanix.com": true, "csi.kubevirt.io": true, "diskplugin.csi.alibabacloud.com": true,
}

// volumeID returns what Node.status.volumesAttached knows a volume by; "" for one that is not attached to an instance.
func volumeID(spec *corev1.PersistentVolumeSpec) string {
	switch {
	case spec == nil:
		return ""
	case spec.CSI != nil:
		if attachingDrivers[spec.CSI.Driver] {
			return spec.CSI.VolumeHandle
		}
	case spec.AWSElasticBlockStore != nil:
		return spec.AWSElasticBlockStore.VolumeID
	case spec.AzureDisk != nil:
		return spec.AzureDisk.DiskName
	case spec.GCEPersistentDisk != nil:
		return spec.GCEPersistentDisk.PDName
	case spec.Cinder != nil:
		return spec.Cinder.VolumeID
	case spec.VsphereVolume != nil:
		return spec.VsphereVolume.VolumePath
	}
	return ""
}
