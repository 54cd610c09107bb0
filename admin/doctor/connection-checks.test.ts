import { expect, it } from 'vitest'
import { freePort } from '../../test/support/free-port.ts'
import { startSilentServer } from '../../test/support/silent-server.ts'
import { connectionFindings, type Finding } from './doctor.ts'

async function allFindings(url: URL, ...addresses: string[]) {
  const found: Finding[] = []
  for await (const finding of connectionFindings(url, resolveTo(...addresses))) found.push(finding)
  return found
}

const resolveTo =
  (...addresses: string[]) =>
  async () =>
    addresses.map((address) => ({ address }))

it('reports an address before it tries the next one', async () => {
  const silent = await startSilentServer('127.0.0.2')
  const findings = connectionFindings(
    new URL(`https://chat.example:${silent.port}`),
    resolveTo('127.0.0.1', '127.0.0.2'),
  )
  await findings.next()
  const { value } = await findings.next()
  expect(value).toMatchObject({ isFault: true, text: expect.stringMatching(/^127\.0\.0\.1, .*nothing listens there/) })
  expect(silent.connections()).toBe(0)
  await findings.return(false)
})

it.each([
  ['127.0.0.1', '127.0.0.2'],
  ['127.0.0.2', '127.0.0.1'],
])('accepts that a local server listens on one of the addresses %s and %s', async (...addresses) => {
  const { port } = await startSilentServer('127.0.0.2')
  const found = await allFindings(new URL(`http://localhost:${port}`), ...addresses)
  expect(found.filter(({ isFault }) => isFault)).toEqual([])
  const text = 'nothing listens on 127.0.0.1; browsers use the other address'
  expect(found).toContainEqual({ isFault: false, text })
})

it('names each address of this machine on which nothing listens', async () => {
  const url = new URL(`http://localhost:${await freePort()}`)
  const found = await allFindings(url, '127.0.0.1', '127.0.0.2')
  const text = expect.stringMatching(/nothing listens there: start the proxy/)
  expect(found.slice(1)).toEqual([
    { isFault: true, text },
    { isFault: true, text },
  ])
})
