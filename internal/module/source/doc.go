// Package source fetches provider modules in archives from an OCI registry, a web server or a file.
// A reference contains the location and the digest of the content, so it does not matter who else
// can write to that location. docs/contracts/module.md describes archives and artifacts.
package source
