// Package life takes a Machine of every module and stack through its whole life: the built manager on a development cluster, with the real provider and
// the best infrastructure to be had. It is one list of steps; a platform is a value. ADR 0032 says why.
//
//	make life                   # all that this machine can run; what cannot is skipped with the reason
//	make life PLATFORM=azure    # one; PROVIDERS=DIR has the programs of providers that 'make tools' does not build
package life
