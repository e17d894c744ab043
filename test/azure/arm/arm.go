// Package arm simulates as much of Azure's Resource Manager as the module azure uses, on loopback: sign-in, and resources of any type, which are kept
// as they are written and get what Azure adds to the few types that Machines are made of. It knows no quota, size, policy or rule about what goes together.
package arm

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/machine-iac/machine-iac-operator/test/calls"
)

// Subscription, Tenant, Client and Secret are what signs in. Cluster is the cluster whose resource group there is, and Group that resource group.
const (
	Subscription = "00000000-0000-4000-8000-00000000a55e"
	Tenant       = "00000000-0000-4000-8000-0000000007e4"
	Client       = "00000000-0000-4000-8000-00000000c11e"
	Secret       = "simulated"
	Cluster      = "demo-x7k2p"
	Group        = "/subscriptions/" + Subscription + "/resourceGroups/" + Cluster + "-rg"
)

// slowRead is how long the response with a network interface takes.
const slowRead = 50 * time.Millisecond

type object = map[string]any

// Server is a Resource Manager that runs. It knows no rule of Azure's, so that it refuses nothing but what is not there.
type Server struct {
	// Calls counts the requests.
	Calls calls.Log

	server      *httptest.Server
	certificate string
	latency     time.Duration
	// machineLatency is the latency of virtual machines.
	machineLatency time.Duration
	now            func() time.Time
	allowed        func(action string) bool

	mutex  sync.Mutex
	secret string
	// resources are by their IDs in small letters; writes are the requests that changed something, in their order.
	resources map[string]object
	writes    []string
	addresses int
	// revision counts what was stored, for etags.
	revision int
	// refusal is the type and name of what is refused, and the code of the error.
	refusal []string
	// operations are the writes that end later, by number.
	operations []*operation
	problems   []string
}

// Options say how a Resource Manager behaves.
type Options struct {
	// Dir is the folder that the certificate is written into.
	Dir string
	// Latency is how long a write takes: it is accepted, and its operation is polled until it has ended. Zero carries writes out at once.
	Latency time.Duration
	// MachineLatency is how long a write of a virtual machine takes, if that is longer.
	MachineLatency time.Duration
	// Now is the clock; that of the machine when nil.
	Now func() time.Time
	// Allowed returns whether the client may do what an action names; nil allows everything. It is asked for each action that a request requires.
	Allowed func(action string) bool
}

// Start starts a Resource Manager on loopback.
func Start(o Options) (*Server, error) {
	a := &Server{resources: map[string]object{}, secret: Secret, latency: o.Latency, machineLatency: max(o.Latency, o.MachineLatency), now: o.Now, allowed: o.Allowed, certificate: filepath.Join(o.Dir, "arm.pem")}
	if a.now == nil {
		a.now = time.Now
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metadata/endpoints", a.endpoints)
	mux.HandleFunc("POST /"+Tenant+"/oauth2/v2.0/token", a.token)
	mux.HandleFunc("GET /subscriptions/{subscription}/resources", a.list)
	mux.HandleFunc("GET /subscriptions/{subscription}/{groups}/{group}/resources", a.list)
	mux.HandleFunc("GET "+operationsPath+"{number}", a.operation)
	mux.HandleFunc("GET /subscriptions/", a.get)
	mux.HandleFunc("PUT /subscriptions/", a.put)
	mux.HandleFunc("POST /subscriptions/", a.act)
	mux.HandleFunc("DELETE /subscriptions/", a.delete)
	a.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.serve(mux, w, r)
		if r.Method == http.MethodGet && strings.Contains(strings.ToLower(r.URL.Path), "/networkinterfaces/") {
			time.Sleep(slowRead) // who reads it at the same time to change it reads the same
		}
	}))
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate().Raw})
	if err := os.WriteFile(a.certificate, authority, 0o600); err != nil {
		a.server.Close()
		return nil, fmt.Errorf("writing the certificate of the simulated Resource Manager: %w", err)
	}
	return a, nil
}

// TakeFor sets how long a write of a virtual machine takes from now on, if that is longer than the others.
func (a *Server) TakeFor(latency time.Duration) {
	defer a.lock()()
	a.machineLatency = max(a.latency, latency)
}

// Close ends it.
func (a *Server) Close() { a.server.Close() }

// callOf names a request for the log. Who reads what was deleted waits for that.
func (a *Server) callOf(r *http.Request) string {
	deletes := func(one *operation) bool { return one.removes && strings.EqualFold(one.id, r.URL.Path) }
	switch {
	case r.Method == http.MethodGet && slices.ContainsFunc(a.operations, deletes):
		return calls.Poll + kindOf(r.URL.Path)
	case !strings.HasPrefix(r.URL.Path, "/subscriptions/"):
		return calls.Login + r.URL.Path
	case strings.HasPrefix(r.URL.Path, operationsPath):
		return calls.Poll + "operations"
	}
	return r.Method + " " + kindOf(r.URL.Path)
}

func (a *Server) serve(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	defer a.lock()()
	a.Calls.Note(a.callOf(r))
	if strings.HasPrefix(r.URL.Path, "/subscriptions/") && !strings.HasSuffix(r.Header.Get("Authorization"), "."+a.secret) {
		refuse(w, http.StatusUnauthorized, "AuthenticationFailed", "no token, or one of a secret that was replaced")
		return
	}
	if strings.HasPrefix(r.URL.Path, "/subscriptions/") && !a.permits(w, r) {
		return
	}
	if a.takes(r.URL.Path) == 0 {
		// The provider's SDK does not wait then before it reads what is done already.
		w.Header().Set("X-Go-Azure-Sdk-Skip-Polling-Delay", "true")
	}
	mux.ServeHTTP(w, r)
}

// Client returns a client that trusts the certificate.
func (a *Server) Client() *http.Client { return a.server.Client() }

// Environment is what a run has from the cluster.
func (a *Server) Environment() map[string]string {
	return map[string]string{"ARM_METADATA_HOSTNAME": a.server.Listener.Addr().String(), "SSL_CERT_FILE": a.certificate}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	respond(w, status, object{"error": object{"code": code, "message": message}})
}

// endpoints says that everything of this cloud is here.
func (a *Server) endpoints(w http.ResponseWriter, _ *http.Request) {
	here := a.server.URL
	respond(w, http.StatusOK, object{
		"name": "AzureCloud", "resourceManager": here, "microsoftGraphResourceId": here, "graph": here, "portal": here,
		"authentication": object{"loginEndpoint": here, "audiences": []string{here}, "tenant": "common", "identityProvider": "AAD"},
		"suffixes":       object{"storage": "core.local", "keyVaultDns": "vault.local"},
	})
}

// token signs in who has the secret.
func (a *Server) token(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("client_id") != Client || r.PostFormValue("client_secret") != a.secret {
		respond(w, http.StatusUnauthorized, object{"error": "invalid_client", "error_description": "AADSTS7000215: another client or secret"})
		return
	}
	claims, _ := json.Marshal(object{"oid": Client, "tid": Tenant, "appid": Client, "idtyp": "app"})
	encode := base64.RawURLEncoding.EncodeToString
	respond(w, http.StatusOK, object{
		"token_type": "Bearer", "expires_in": 3600, "access_token": encode([]byte(`{"alg":"none"}`)) + "." + encode(claims) + "." + a.secret,
	})
}

var filter = regexp.MustCompile(`(resourceType|resourceGroup|name) eq '([^']*)'`)

// list returns resources as Resource Manager lists them: without what is special to their type.
func (a *Server) list(w http.ResponseWriter, r *http.Request) {
	wanted := map[string]string{}
	for _, condition := range filter.FindAllStringSubmatch(r.URL.Query().Get("$filter"), -1) {
		wanted[condition[1]] = condition[2]
	}
	if group := r.PathValue("group"); group != "" {
		wanted["resourceGroup"] = group
	}
	found := []object{}
	for _, id := range slices.Sorted(maps.Keys(a.resources)) {
		one := a.resources[id]
		says := map[string]string{"resourceType": one["type"].(string), "name": one["name"].(string), "resourceGroup": part(one["id"].(string), 4)}
		matches := true
		for name, value := range wanted {
			matches = matches && strings.EqualFold(says[name], value)
		}
		if matches && strings.Count(says["resourceType"], "/") == 1 {
			found = append(found, object{"id": one["id"], "name": one["name"], "type": one["type"], "location": one["location"], "tags": one["tags"]})
		}
	}
	respond(w, http.StatusOK, object{"value": found})
}

// part returns a part of an ID, from the first slash on.
func part(id string, position int) string {
	if parts := strings.Split(id, "/"); position < len(parts) {
		return parts[position]
	}
	return ""
}

func (a *Server) get(w http.ResponseWriter, r *http.Request) {
	id := strings.ToLower(strings.TrimSuffix(r.URL.Path, "/"))
	machine, view := strings.CutSuffix(id, "/instanceview")
	one := a.resources[machine]
	switch {
	case one == nil && strings.Contains(id, "/backendaddresspools/"):
		respond(w, http.StatusOK, a.pool(r.URL.Path))
	case one == nil && strings.Count(id, "/") == 4 && strings.Contains(id, "/resourcegroups/"):
		respond(w, http.StatusOK, object{"id": r.URL.Path, "name": part(r.URL.Path, 4), "location": "eastus", "properties": object{"provisioningState": "Succeeded"}})
	case one == nil:
		refuse(w, http.StatusNotFound, "ResourceNotFound", "The Resource '"+r.URL.Path+"' was not found.")
	case view:
		respond(w, http.StatusOK, one["properties"].(object)["instanceView"])
	default:
		respond(w, http.StatusOK, shown(one, r.URL.Query().Get("$expand")))
	}
}

// pool is the pool of a load balancer that others have made, with what is in it.
func (a *Server) pool(id string) object {
	members := []any{}
	for _, one := range a.resources {
		configurations, _ := one["properties"].(object)["ipConfigurations"].([]any)
		for _, configuration := range configurations {
			pools, _ := configuration.(object)["properties"].(object)["loadBalancerBackendAddressPools"].([]any)
			for _, pool := range pools {
				if strings.EqualFold(pool.(object)["id"].(string), id) {
					members = append(members, object{"id": configuration.(object)["id"]})
				}
			}
		}
	}
	return object{"id": id, "name": part(id, 10), "properties": object{"provisioningState": "Succeeded", "backendIPConfigurations": members}}
}

// shown is a resource as Azure returns it: passwords and user data to nobody, the power to who asks for it.
func shown(one object, expand string) object {
	properties := maps.Clone(one["properties"].(object))
	if !strings.EqualFold(expand, "instanceView") {
		delete(properties, "instanceView")
	}
	if profile, ok := properties["osProfile"].(object); ok {
		profile = maps.Clone(profile)
		delete(profile, "adminPassword")
		delete(profile, "customData")
		properties["osProfile"] = profile
	}
	whole := maps.Clone(one)
	whole["properties"] = properties
	return whole
}

func (a *Server) put(w http.ResponseWriter, r *http.Request) {
	var written object
	if err := json.NewDecoder(r.Body).Decode(&written); err != nil {
		refuse(w, http.StatusBadRequest, "InvalidRequestContent", err.Error())
		return
	}
	a.writes = append(a.writes, "PUT "+nameOf(r.URL.Path))
	if len(a.refusal) > 0 && strings.EqualFold(nameOf(r.URL.Path), a.refusal[0]) {
		refuse(w, http.StatusBadRequest, a.refusal[1], "It is refused.")
		return
	}
	id := strings.TrimSuffix(r.URL.Path, "/")
	before := a.resources[strings.ToLower(id)]
	if read := written["etag"]; before != nil && read != nil && read != before["etag"] {
		a.problems = append(a.problems, nameOf(id)+" is written from what was read before another write, which this one undoes")
	}
	keepUser(before, written)
	stored := a.store(id, written)
	if a.takes(id) == 0 {
		respond(w, http.StatusOK, shown(stored, ""))
		return
	}
	a.begin(w, id, "Creating", false)
	respond(w, http.StatusCreated, shown(stored, ""))
}

// keepUser leaves what a disk or a network interface is attached to as it was: nobody can write that.
func keepUser(before, written object) {
	delete(written, "managedBy")
	properties, _ := written["properties"].(object)
	delete(properties, "virtualMachine")
	if before == nil || properties == nil {
		return
	}
	if user, ok := before["managedBy"]; ok {
		written["managedBy"] = user
	}
	if user, ok := before["properties"].(object)["virtualMachine"]; ok {
		properties["virtualMachine"] = user
	}
}

// nameOf is the type and name of what an ID is about.
func nameOf(id string) string {
	parts := strings.Split(strings.Trim(id, "/"), "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}

// store keeps a resource, with what Azure adds to it, and returns it.
func (a *Server) store(id string, one object) object {
	kind := kindOf(id)
	a.revision++
	one["id"], one["name"], one["type"], one["etag"] = id, path.Base(id), kind, fmt.Sprintf(`W/"%d"`, a.revision)
	properties, _ := one["properties"].(object)
	if properties == nil {
		properties = object{}
		one["properties"] = properties
	}
	properties["provisioningState"] = "Succeeded"
	switch strings.ToLower(kind) {
	case "microsoft.network/networkinterfaces":
		a.completeInterface(id, properties)
	case "microsoft.network/publicipaddresses":
		properties["ipAddress"] = "20.0.0.4"
		if settings, ok := properties["dnsSettings"].(object); ok {
			settings["fqdn"] = fmt.Sprint(settings["domainNameLabel"]) + "." + fmt.Sprint(one["location"]) + ".cloudapp.azure.com"
		}
	case "microsoft.compute/virtualmachines":
		a.completeMachine(id, one, properties)
	}
	a.resources[strings.ToLower(id)] = one
	return one
}

func (a *Server) completeInterface(id string, properties object) {
	properties["macAddress"] = "00-0D-3A-00-00-04"
	settings, _ := properties["dnsSettings"].(object)
	if settings == nil {
		settings = object{}
		properties["dnsSettings"] = settings
	}
	settings["internalDomainNameSuffix"] = "internal.cloudapp.net"
	configurations, _ := properties["ipConfigurations"].([]any)
	for _, one := range configurations {
		configuration := one.(object)
		configuration["id"] = id + "/ipConfigurations/" + configuration["name"].(string)
		details := configuration["properties"].(object)
		if address, _ := details["privateIPAddress"].(string); address != "" {
			continue
		}
		a.addresses++
		details["privateIPAddress"] = fmt.Sprintf("10.0.0.%d", 3+a.addresses)
		if details["privateIPAddressVersion"] == "IPv6" {
			details["privateIPAddress"] = fmt.Sprintf("fd00::%d", 3+a.addresses)
		}
	}
}

// completeMachine makes the disks that a virtual machine is made with, and has it run.
func (a *Server) completeMachine(id string, one, properties object) {
	group, _, _ := strings.Cut(id, "/providers/")
	storage := properties["storageProfile"].(object)
	system := storage["osDisk"].(object)
	data, _ := storage["dataDisks"].([]any)
	for _, each := range append([]any{system}, data...) {
		disk := each.(object)
		managed, _ := disk["managedDisk"].(object)
		if managed == nil {
			managed = object{}
			disk["managedDisk"] = managed
		}
		if named, _ := managed["id"].(string); named == "" {
			named = group + "/providers/Microsoft.Compute/disks/" + fmt.Sprint(disk["name"])
			managed["id"] = named
			a.store(named, object{
				"location": one["location"], "sku": object{"name": managed["storageAccountType"]},
				"properties": object{"diskSizeGB": disk["diskSizeGB"], "creationData": object{"createOption": disk["createOption"]}},
			})
		}
		if found := a.resources[strings.ToLower(managed["id"].(string))]; found != nil {
			found["managedBy"] = id
		}
	}
	properties["vmId"] = "5e0ad6a1-0000-4000-8000-0000000000a2"
	properties["timeCreated"] = "2026-01-02T03:04:05Z"
	properties["instanceView"] = instanceView("running")
	network := properties["networkProfile"].(object)
	for _, each := range network["networkInterfaces"].([]any) {
		if found := a.resources[strings.ToLower(each.(object)["id"].(string))]; found != nil {
			found["properties"].(object)["virtualMachine"] = object{"id": id}
		}
	}
}

func instanceView(power string) object {
	return object{"statuses": []any{
		object{"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Provisioning succeeded"},
		object{"code": "PowerState/" + power, "level": "Info", "displayStatus": "VM " + power},
	}}
}

// act does what is requested of a virtual machine: its power.
func (a *Server) act(w http.ResponseWriter, r *http.Request) {
	id, action := filepath.Split(r.URL.Path)
	power := map[string]string{"powerOff": "stopped", "deallocate": "deallocated", "start": "running"}[action]
	one := a.resources[strings.ToLower(strings.TrimSuffix(id, "/"))]
	if one == nil || power == "" {
		refuse(w, http.StatusNotFound, "ResourceNotFound", "There is no "+r.URL.Path+".")
		return
	}
	a.writes = append(a.writes, "POST "+nameOf(id)+"/"+action)
	one["properties"].(object)["instanceView"] = instanceView(power)
	if a.takes(id) == 0 {
		w.WriteHeader(http.StatusOK)
		return
	}
	a.begin(w, strings.TrimSuffix(id, "/"), "Updating", false)
	w.WriteHeader(http.StatusAccepted)
}

func (a *Server) delete(w http.ResponseWriter, r *http.Request) {
	id := strings.ToLower(r.URL.Path)
	if a.resources[id] == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	a.writes = append(a.writes, "DELETE "+nameOf(r.URL.Path))
	if user := usedBy(a.resources[id]); user != "" {
		refuse(w, http.StatusConflict, "OperationNotAllowed", "It is used by "+user+".")
		return
	}
	if a.takes(id) == 0 {
		a.drop(r.URL.Path)
		w.WriteHeader(http.StatusOK)
		return
	}
	a.begin(w, r.URL.Path, "Deleting", true)
	w.WriteHeader(http.StatusAccepted)
}

// drop removes a resource, and detaches what it had.
func (a *Server) drop(id string) {
	delete(a.resources, strings.ToLower(id))
	a.release(id)
}

// release detaches what a virtual machine had.
func (a *Server) release(machine string) {
	for _, other := range a.resources {
		if strings.EqualFold(usedBy(other), machine) {
			delete(other, "managedBy")
			delete(other["properties"].(object), "virtualMachine")
		}
	}
}

// usedBy is the virtual machine that a disk or a network interface is attached to.
func usedBy(one object) string {
	if machine, ok := one["properties"].(object)["virtualMachine"].(object); ok {
		return machine["id"].(string)
	}
	machine, _ := one["managedBy"].(string)
	return machine
}

// Property returns a field of a resource, as JSON.
func (a *Server) Property(id string, path ...string) string {
	defer a.lock()()
	var value any = a.resources[strings.ToLower(Group+"/providers/"+id)]
	for _, name := range path {
		inner, _ := value.(object)
		value = inner[name]
	}
	raw, _ := json.Marshal(value)
	return string(raw)
}

// Names returns the types and names of what is there.
func (a *Server) Names() []string {
	defer a.lock()()
	var all []string
	for _, one := range a.resources {
		all = append(all, nameOf(one["id"].(string)))
	}
	slices.Sort(all)
	return all
}

// Writes returns the requests so far that changed something, in their order.
func (a *Server) Writes() []string {
	defer a.lock()()
	return slices.Clone(a.writes)
}

// Problems returns what was requested that Azure would have taken and that lost something.
func (a *Server) Problems() []string {
	defer a.lock()()
	return slices.Clone(a.problems)
}

// Power has a virtual machine be in another state.
func (a *Server) Power(id, state string) {
	defer a.lock()()
	a.resources[strings.ToLower(Group+"/providers/"+id)]["properties"].(object)["instanceView"] = instanceView(state)
}

// Remove takes a resource away, as others do.
func (a *Server) Remove(id string) {
	defer a.lock()()
	a.drop(Group + "/providers/" + id)
}

// Refuse has requests to write a resource fail, by its type and name, with the code of an error. Without both nothing fails.
func (a *Server) Refuse(refusal ...string) {
	defer a.lock()()
	a.refusal = refusal
}

// Rotate replaces the secret of the client. Tokens that were given for the former one are refused from now on.
func (a *Server) Rotate(secret string) {
	defer a.lock()()
	a.secret = secret
}

// Copy makes a virtual machine like one that is there, with its disk and its network interface, as somebody else than the operator would: under
// another name, and with these tags alone.
func (a *Server) Copy(from, to string, tags map[string]any) error {
	defer a.lock()()
	for _, id := range []string{"Microsoft.Network/networkInterfaces/" + from + "-nic", "Microsoft.Compute/virtualMachines/" + from} {
		raw, err := json.Marshal(a.resources[strings.ToLower(Group+"/providers/"+id)])
		copied := object{}
		if err == nil {
			err = json.Unmarshal([]byte(strings.ReplaceAll(string(raw), from, to)), &copied)
		}
		if err != nil || copied["properties"] == nil {
			return fmt.Errorf("copying %s, which must be there: %w", id, err)
		}
		delete(copied["properties"].(object), "virtualMachine")
		copied["tags"] = tags
		a.store(Group+"/providers/"+strings.ReplaceAll(id, from, to), copied)
	}
	return nil
}
