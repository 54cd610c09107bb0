// Reads times from sockets, and knows how long each has been on its way.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { clock, obey } from '../obey.ts'

let waits: number[] = []
const server = createServer((socket) => {
  socket.setEncoding('latin1').on('data', (text: string) => {
    const now = clock()
    for (const at of text.trim().split('\n')) waits.push(now - Number(at))
  })
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')

obey(async (command: { do: 'port' | 'waits' }) => {
  if (command.do === 'port') return (server.address() as AddressInfo).port
  const taken = waits
  waits = []
  return taken
})
