import { Chat } from './chat';
import { Charts } from './charts';
import { Events } from './events';
import { Brand, Headline } from './header';
import { AccessDialog } from './accessdialog';
import { Lanes } from './lanes';
import { Nodes } from './nodes';
import { PoolPanel } from './pool';
import { Announcer } from './announcer';
import { connection } from './live';

export function App() {
  return (
    <>
      <a class="skip" href="#ask">Skip to the chat</a>
      <Brand />
      <div class="floor" data-stale={connection.value.state === 'lost' || undefined}>
        <main>
          <Headline />
          <Lanes />
          <Nodes />
          <Charts />
          <div class="pair">
            <PoolPanel />
            <Events />
          </div>
        </main>
        <Chat />
      </div>
      <AccessDialog />
      <Announcer />
    </>
  );
}
