import { createRouterTransport } from '@connectrpc/connect'
import { expect, test } from 'vitest'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { refusal, unreachable } from '../test/core-answers.ts'
import { createTestCore } from '../test/test-core.ts'
import { startTestGateway } from '../test/test-gateway.ts'

const path = (letter: string) => `/pictures/${letter.repeat(43)}`
const PICTURE = Buffer.alloc(60_000, 'x')
const TEN_MINUTES_MS = 600_000
/** An image element of another site sends none of these headers. */
const headers = { origin: null, authorization: null, 'x-service-widget-version': null }

/** Starts a gateway in front of a core that has these pictures. */
async function startWithPictures(...letters: string[]) {
  const pictures = new Set(letters.map((letter) => letter.repeat(43)))
  const asked = { count: 0, isDown: false }
  const core = createTestCore()
  core.transport = createRouterTransport(({ service }) =>
    service(SessionService, {
      getPicture({ pictureId }) {
        asked.count += 1
        if (asked.isDown) throw unreachable()
        if (!pictures.has(pictureId)) throw refusal('NotFound')
        return { contentType: 'image/png', content: PICTURE }
      },
    }),
  )
  const gateway = await startTestGateway({ env: { RATE_LIMIT_CONFIG_PER_MINUTE: '5' }, cores: [core] })
  const get = (letter: string) => gateway.call('GET', path(letter), { headers })
  return { ...gateway, pictures, asked, get, status: async (letter: string) => (await get(letter)).status }
}

test('a gateway asks a core for a picture at most once in ten minutes, however many requests come', async () => {
  const { pictures, asked, clock, get, status } = await startWithPictures('a')
  const answers = await Promise.all(Array.from({ length: 5 }, () => get('a')))
  for (const answer of answers) expect(Buffer.from(await answer.arrayBuffer()).equals(PICTURE)).toBe(true)
  for (let count = 0; count < 20; count += 1) expect(await status('a')).toBe(200)
  expect(asked.count).toBe(1)
  pictures.clear()
  clock.advance(TEN_MINUTES_MS - 1)
  expect(await status('a')).toBe(200)
  clock.advance(1)
  expect(await status('a')).toBe(404)
})

test('pictures and configurations have separate limits', async () => {
  const { status, call } = await startWithPictures()
  for (const letter of 'abcde') expect(await status(letter)).toBe(404)
  expect(await status('f')).toBe(429)
  // The core of this test has no configuration.
  expect((await call('GET', '/config/pk_demo')).status).not.toBe(429)
})

test('unknown ids are limited per address, and cached pictures are not', async () => {
  const { asked, get, status } = await startWithPictures('a')
  expect(await status('a')).toBe(200)
  for (const letter of 'bcde') expect(await status(letter)).toBe(404)
  const refused = await get('f')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '12'])
  expect(refused.headers.get('cache-control')).toBe('no-store')
  expect(await status('a')).toBe(200)
  expect(asked.count).toBe(5)
})

test('ids of another form ask no core', async () => {
  const { asked, call } = await startWithPictures()
  for (const id of ['a', `${'a'.repeat(42)}.`, 'a'.repeat(44), `${'a'.repeat(42)}%00`, '%2e%2e%2fconfig'])
    expect((await call('GET', `/pictures/${id}`, { headers })).status, id).toBe(404)
  expect(asked.count).toBe(0)
})

test('a picture that is not cached gets 503 while no core answers, and is not cached as missing', async () => {
  const { asked, clock, get, status } = await startWithPictures('a')
  asked.isDown = true
  const failed = await get('a')
  expect([failed.status, failed.headers.get('cache-control')]).toEqual([503, 'no-store'])
  asked.isDown = false
  // The gateway avoids a failed core for a while.
  clock.advance(10_000)
  expect(await status('a')).toBe(200)
})
