import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startFaultyProxy } from '../support/faulty-proxy.ts'
import { scrape, sumOf } from '../support/metrics.ts'
import { until } from '../support/until.ts'
import { issueToken, productionParts, type StartedPart, secretKey, timedStatus } from './service-parts.ts'

const parts = productionParts()
let core: StartedPart

const ready = (part: StartedPart) =>
  until(`ready: ${part.url}`, async () => (await timedStatus(`${part.url}/readyz`)).status === 200)
const says = (part: StartedPart, text: string | RegExp) =>
  until(`the line ${text}`, () =>
    part.process
      .output()
      .split('\n')
      .find((line) => line.match(text)),
  )

/** Expects that the process exits with this code and writes exactly one line to its standard error. */
async function expectRefusal({ process }: StartedPart, code: number, text: string) {
  expect(await process.exited).toEqual({ code, signal: null })
  const lines = process.output().trim().split('\n')
  const errors = lines.filter((line) => !line.startsWith('{'))
  expect(errors).toEqual([expect.stringContaining(text)])
}

beforeAll(async () => {
  core = await parts.core()
  await ready(core)
})
afterAll(() => core.process.stop())

describe('SECRET_KEYS that differ from those of the database', () => {
  it('are refused if another key has the id of the one in use', async () => {
    const other = await parts.core({ SECRET_KEYS: secretKey('k1', 2) })
    await expectRefusal(other, 2, 'another key under the id "k1"')
  })

  it('are refused if the key in use is missing', async () => {
    await expectRefusal(await parts.core({ SECRET_KEYS: secretKey('k2', 2) }), 2, 'SECRET_KEYS lacks the key "k1"')
  })

  it('are accepted behind a new key; afterwards a core without the new key is refused', async () => {
    const rotated = await parts.core({ SECRET_KEYS: `${secretKey('k2', 2)},${secretKey('k1')}` })
    await ready(rotated)
    await rotated.process.stop()
    await expectRefusal(await parts.core(), 2, 'lacks the key "k2", which is in use since')
  })

  it('let --rekey fail if a key is lost, and --rekey forgets a withdrawn key', async () => {
    await parts.inDatabase((db) =>
      db
        .collection<{ _id: string }>('keys')
        .updateOne({ _id: 'ids' }, { $set: { sealed: 'k7.AAAA.AAAA' } }, { upsert: true }),
    )
    expect(await parts.migrate(['--rekey'])).toMatchObject({
      code: 1,
      output: expect.stringContaining('lacks the key "k7"'),
    })
    await parts.inDatabase((db) => db.collection<{ _id: string }>('keys').deleteOne({ _id: 'ids' }))
    expect(await parts.migrate(['--rekey'])).toMatchObject({ code: 0 })
    const again = await parts.core()
    await ready(again)
    await again.process.stop()
  })
})

describe('a database of another version', () => {
  it('is refused if a newer version has contracted it, and the line has the version', async () => {
    const record = {
      _id: 9_999,
      name: 'of tomorrow',
      expandedAt: new Date(),
      contractedAt: new Date(),
      version: '9.9.9',
    }
    await parts.inDatabase((db) => db.collection<{ _id: number }>('migrations').insertOne(record))
    const text = 'the database needs version 9.9.9 or newer'
    await expectRefusal(await parts.core(), 1, text)
    await expectRefusal(await parts.core({ MIGRATE_AT_START: 'off' }), 1, text)
    expect((await parts.migrate(['--status'])).output).toContain('newer        9999 of tomorrow (needs version 9.9.9)')
    await parts.inDatabase((db) => db.collection<{ _id: number }>('migrations').deleteOne({ _id: 9_999 }))
  })

  it('is refused if an index has other keys under the same name', async () => {
    await parts.inDatabase(async (db) => {
      await db.collection('leads').dropIndex('by_capture')
      await db.collection('leads').createIndex({ createdAt: 1 }, { name: 'by_capture' })
    })
    expect((await parts.migrate(['--status'])).output).toContain('different    leads.by_capture')
    await expectRefusal(await parts.core({ MIGRATE_AT_START: 'off' }), 1, 'leads.by_capture has other keys')
    await expectRefusal(await parts.core(), 1, 'the indexes of leads cannot be created')
    await parts.inDatabase((db) => db.collection('leads').dropIndex('by_capture'))
    expect((await parts.migrate([])).code).toBe(0)
  })
})

it('while the database is away, probes and metrics answer within a second and report it; later they recover', async () => {
  const proxy = await startFaultyProxy(decodeURIComponent(/^mongodb:\/\/([^/?]+)/.exec(parts.database.uri)![1]!))
  const cut = await parts.core({ MONGODB_URI: `mongodb://127.0.0.1:${proxy.port}/?directConnection=true` })
  await ready(cut)
  await proxy.close()
  const isUp = async () => sumOf(await scrape(cut.metricsUrl), 'service_core_database_up')
  await until('the database is down', async () => (await isUp()) === 0)
  const [probe, metrics] = await Promise.all([timedStatus(`${cut.url}/readyz`), timedStatus(cut.metricsUrl)])
  expect([probe.status, metrics.status]).toEqual([503, 200])
  // The answer comes after 0.9 s. The rest is the time of a busy machine.
  expect(Math.max(probe.ms, metrics.ms)).toBeLessThan(2_500)
  await says(cut, 'the database does not answer')
  await cut.process.stop()
})

describe('a token of a gateway', () => {
  const now = Date.now()
  const scopes = ['visitors:act']
  const keys = secretKey('k1')
  const cases: [name: string, token: Promise<string>, gatewaySays: RegExp, coreSays: RegExp][] = [
    [
      'that has expired',
      issueToken(keys, { subject: 'gateway', scopes, lifetime: 60 }, () => now - 3_600_000),
      /CORE_TOKEN \(subject \\"gateway\\"\) expired on/,
      /refused a call/,
    ],
    ['that is garbled', Promise.resolve('not.a.token-at-all'), /CORE_TOKEN is not a service token/, /a garbled token/],
    [
      'that was swapped',
      issueToken(keys, { subject: 'delivery', scopes: ['deliveries:work'] }),
      /lacks the scope visitors:act: it has deliveries:work/,
      /delivery\\" lacks the scope visitors:act/,
    ],
    [
      'of other keys',
      issueToken(secretKey('k9', 9), { subject: 'gateway', scopes }),
      /is refused: it was changed, or the SECRET_KEYS of the cores lack its key/,
      /key \\"k9\\", which SECRET_KEYS lacks/,
    ],
  ]

  it.each(cases)('%s makes it unready, and both sides say why', async (_, token, gatewaySays, coreSays) => {
    const gateway = await parts.gateway({ CORE_TOKEN: await token, CORE_URLS: core.url })
    await says(gateway, gatewaySays)
    await says(core, coreSays)
    expect((await timedStatus(`${gateway.url}/readyz`)).status).toBe(503)
    await gateway.process.stop()
  })

  it('has its expiry in the metrics', async () => {
    const token = await issueToken(keys, { subject: 'gateway', scopes, lifetime: 3_600 })
    const gateway = await parts.gateway({ CORE_TOKEN: token, CORE_URLS: core.url })
    await ready(gateway)
    const samples = await scrape(gateway.metricsUrl)
    expect(sumOf(samples, 'service_token_expires_timestamp_seconds') - Date.now() / 1000).toBeGreaterThan(3_000)
    expect(samples.find(({ name }) => name === 'service_build_info')?.labels).toMatchObject({ part: 'gateway' })
    await gateway.process.stop()
  })
})

it('a core whose clock is an hour ahead does not start', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'operator-clock-'))
  const clock = join(folder, 'clock')
  await writeFile(clock, String(3_600_000))
  const ahead = await parts.core({ CHAOS_CLOCK: clock }, ['test/chaos/moved-clock.ts'])
  await expectRefusal(ahead, 1, 'the clock of this machine is 3600 s ahead of the clock of the database')
  await rm(folder, { recursive: true })
})

it('a misspelt setting and a name that does not resolve are warned of', async () => {
  const token = await issueToken(secretKey('k1'), { subject: 'gateway', scopes: ['visitors:act'] })
  const gateway = await parts.gateway({
    CORE_TOKEN: token,
    CORE_URLS: 'dns://nowhere.invalid:8090',
    TRUST_PROXI: '1',
    RATE_LIMIT_SEND_PER_MINUTE: '5',
    CORE_SERVICE_HOST: '10.0.0.1',
  })
  await says(gateway, 'TRUST_PROXI is not a setting and is ignored; did you mean TRUST_PROXY?')
  await says(
    gateway,
    'RATE_LIMIT_SEND_PER_MINUTE is not a setting and is ignored; did you mean RATE_LIMIT_SENDS_PER_MINUTE?',
  )
  await says(gateway, 'CORE_URLS: the name nowhere.invalid does not resolve')
  expect(gateway.process.output()).not.toContain('CORE_SERVICE_HOST')
  await gateway.process.stop()
})
