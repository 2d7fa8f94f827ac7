import { now, pool } from './live';
import { tint } from './spot';
import { ago, plural } from './words';

export function PoolPanel() {
  const p = pool.value;
  return (
    <section aria-labelledby="pool-title" class="pool">
      <h2 id="pool-title">Connections</h2>
      <p class="note">
        {p ? (
          <>Generation {p.generation}, active for {ago(p.activated, now.value)}{p.pending ? `; ${p.pending} warms up and lacks ${plural(p.writer_deficit, 'writer')}` : p.map_current ? '' : '; a new map is on its way'}. {plural(p.losses, 'connection')} lost since the start.</>
        ) : 'Encrypted, kept warm, replaced before they grow old.'}
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Connections by node">
        <table>
          <thead><tr><th scope="col">to</th><th scope="col">writers</th><th scope="col">wanted</th><th scope="col">sessions</th><th scope="col">state</th></tr></thead>
          <tbody>
            {p?.groups.map((g) => (
              <tr key={g.node}>
                <th scope="row"><i class="swatch" style={tint(g.node)} aria-hidden="true" />{g.node}</th>
                <td>{g.writers}</td><td>{g.floor}</td><td>{g.sessions}</td>
                <td data-grave={g.ready ? 0 : 2}>{g.ready ? (g.draining ? `${g.draining} draining` : 'ready') : g.dialing ? 'dialling' : 'none'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
