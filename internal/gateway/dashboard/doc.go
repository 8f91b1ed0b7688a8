// Package dashboard is the page in which operators see and change what a gateway limits. The admin listener serves it. It
// consists of static files, and gets all that it shows from the admin API. The build tag nodashboard leaves it out.
package dashboard
