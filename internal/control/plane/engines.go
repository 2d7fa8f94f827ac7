package plane

import "hecate/internal/control/admin"

// UseEngines tells administration who knows the engines, once the API runs.
func (g *Gateway) UseEngines(e admin.Engines) { g.engines.Store(&e) }

// Engines are those of the API; nil until it runs.
func (g *Gateway) Engines() admin.Engines {
	if e := g.engines.Load(); e != nil {
		return *e
	}
	return nil
}
