package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/hashicorp/terraform-plugin-sdk/helper/schema"
	"github.com/hashicorp/terraform-provider-vsphere/vsphere"
	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/vapi/rest"
	"github.com/vmware/govmomi/vim25"
)

// logOutTimeout is less than what an engine waits for its providers at the end.
const logOutTimeout = 1500 * time.Millisecond

// keepSessions returns a configure that logs in once. The provider's own logs in to both APIs with every command of an engine and never logs out, while
// vCenter keeps a session for half an hour, and longer while the process lives.
func (v *vcenter) keepSessions(configure schema.ConfigureFunc) schema.ConfigureFunc {
	return func(d *schema.ResourceData) (any, error) {
		config, err := vsphere.NewConfig(d)
		if err != nil {
			return nil, err
		}
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.config != nil && *v.config == *config && v.loggedIn() {
			return v.meta, nil
		}
		v.logOut()
		meta, err := configure(d)
		if err != nil {
			return nil, err
		}
		if err := v.attend(meta); err != nil {
			return nil, err
		}
		v.config, v.meta = config, meta
		return meta, nil
	}
}

// attend has calls see what the provider asks of vCenter. The provider has its clients in fields that it does not export. The caller holds the lock.
func (v *vcenter) attend(meta any) error {
	soap, err := clientOf[govmomi.Client](meta, "vimClient")
	if err == nil && soap == nil {
		err = fmt.Errorf("the vimClient of %T is nil", meta)
	}
	if err != nil {
		return err
	}
	if v.rest, err = clientOf[rest.Client](meta, "restClient"); err != nil {
		return err
	}
	soap.Client.RoundTripper = calls{soap.Client.RoundTripper, v, &reads{made: map[string]*read{}}}
	v.soap = soap
	return nil
}

func clientOf[T any](meta any, name string) (*T, error) {
	holder := reflect.ValueOf(meta)
	if holder.Kind() != reflect.Pointer || holder.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("the provider is configured as %T, which is no struct: see what its clients have become", meta)
	}
	field := holder.Elem().FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[*T]() {
		return nil, fmt.Errorf("%T has no %s of govmomi: see what its clients have become", meta, name)
	}
	return (*T)(field.UnsafePointer()), nil
}

// loggedIn reports whether the sessions are still valid. The caller holds the lock.
func (v *vcenter) loggedIn() bool {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if session, err := v.soap.SessionManager.UserSession(ctx); err != nil || session == nil {
		return false
	}
	if v.rest == nil {
		return true
	}
	session, err := v.rest.Session(ctx)
	return err == nil && session != nil
}

// logOut ends the sessions, as far as vCenter responds in time. The caller holds the lock.
func (v *vcenter) logOut() {
	ctx, cancel := context.WithTimeout(context.Background(), logOutTimeout)
	defer cancel()
	if v.rest != nil {
		_ = v.rest.Logout(ctx)
	}
	if v.soap != nil {
		_ = v.soap.Logout(ctx)
	}
	v.config, v.meta, v.soap, v.rest = nil, nil, nil, nil
}

// close ends the sessions of a provider that stops.
func (v *vcenter) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.logOut()
}

// vim returns the provider's client of the SOAP API.
func (v *vcenter) vim() (*vim25.Client, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.soap == nil {
		return nil, errors.New("the provider is not configured")
	}
	return v.soap.Client, nil
}

// clients returns the provider's clients of both APIs.
func (v *vcenter) clients() (*vim25.Client, *rest.Client, error) {
	client, err := v.vim()
	v.mu.Lock()
	defer v.mu.Unlock()
	if err == nil && v.rest == nil {
		err = errors.New("the vCenter has no REST API, which has the tags")
	}
	return client, v.rest, err
}
