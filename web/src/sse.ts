// Server-sent events over fetch: EventSource cannot send a key, and keys do not
// belong into addresses.

export interface Message { event: string; data: string; id?: string }

/** messages reads a stream; heard is called with every sign of life, comments too. */
export async function* messages(body: ReadableStream<Uint8Array>, heard: () => void = () => undefined): AsyncGenerator<Message> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>).getReader();
  let buffer = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      heard();
      buffer += value;
      for (let end = buffer.indexOf('\n\n'); end >= 0; end = buffer.indexOf('\n\n')) {
        const message = parse(buffer.slice(0, end));
        buffer = buffer.slice(end + 2);
        if (message) yield message;
      }
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function parse(block: string): Message | undefined {
  const data: string[] = [];
  let event = '';
  let id: string | undefined;
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon <= 0) continue; // a comment, or nothing
    const value = line.slice(colon + 1).replace(/^ /, '');
    const field = line.slice(0, colon);
    if (field === 'data') data.push(value);
    else if (field === 'event') event = value;
    else if (field === 'id') id = value;
  }
  return data.length ? { event, data: data.join('\n'), id } : undefined;
}
