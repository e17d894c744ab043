// Package v1beta1 has the kinds that this project adds to the API group machine.openshift.io.
package v1beta1
