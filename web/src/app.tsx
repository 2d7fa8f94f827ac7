import { Chat } from './chat';
import { Charts } from './charts';
import { Events } from './events';
import { Header } from './header';
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
      <Header />
      <div class="floor" data-stale={connection.value.state === 'lost' || undefined}>
        <main>
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
