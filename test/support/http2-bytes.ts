const frameTypes = { headers: 1, reset: 3, settings: 4, goaway: 7 }
/** Flag of a HEADERS frame: the block ends with this frame. */
const endHeaders = 4

/** Bytes that an HTTP/2 client sends, to send what no client library would. */
export const http2Bytes = {
  preface: Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  settings: frame('settings', 0, 0, Buffer.alloc(0)),
  /** A call without its body. */
  head: (stream: number, path: string, headers: Record<string, string> = {}) =>
    frame('headers', endHeaders, stream, headBlock(path, headers)),
  /** A head whose block does not end with this frame. */
  halfHead: (stream: number, path: string) => frame('headers', 0, stream, headBlock(path, {})),
  /** Ends the connection with the error CANCEL. */
  goaway: frame('goaway', 0, 0, Buffer.from([0, 0, 0, 0, 0, 0, 0, 8])),
  reset: (stream: number) => frame('reset', 0, stream, Buffer.from([0, 0, 0, 8])),
}

function frame(type: keyof typeof frameTypes, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(frameTypes[type], 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

function headBlock(path: string, headers: Record<string, string>): Buffer {
  const fields = { ':method': 'POST', ':scheme': 'http', ':path': path, ':authority': 'x', ...headers }
  const literal = (text: string) => [...length(text), ...Buffer.from(text)]
  return Buffer.from(Object.entries(fields).flatMap(([name, value]) => [0, ...literal(name), ...literal(value)]))
}

/** Encodes a length in 7 bits and further bytes (RFC 7541, section 5.1). */
function length({ length }: string): number[] {
  if (length < 127) return [length]
  const bytes = [127]
  let rest = length - 127
  for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128)
  return [...bytes, rest]
}
