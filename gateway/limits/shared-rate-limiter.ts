import { createRequire } from 'node:module'
import { setTimeout as delay } from 'node:timers/promises'
import type { Result } from 'ioredis'
import type { RateLimiter } from './rate-limiter.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    takeToken(key: string, capacity: number, perMs: number): Result<number, Context>
    giveTokenBack(key: string, capacity: number): Result<number, Context>
  }
}

const COMMAND_TIMEOUT_MS = 250
/** How long the store is not used after a failure. */
const PAUSE_MS = 1_000
const START_TIMEOUT_MS = 1_000
const RECONNECT_MAX_MS = 5_000

/**
 * Takes a token and returns 0, or the milliseconds until the next one. The clock of the store avoids skew
 * between gateways. A bucket expires once it would be full.
 */
const TAKE_TOKEN = `
local capacity, perMs = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = capacity
if bucket[1] then tokens = math.min(capacity, bucket[1] + math.max(0, now - bucket[2]) * perMs) end
local wait = 0
if tokens >= 1 then tokens = tokens - 1 else wait = math.max(1, math.ceil((1 - tokens) / perMs)) end
redis.call('HSET', KEYS[1], 'tokens', string.format('%.17g', tokens), 'at', string.format('%.17g', now))
redis.call('PEXPIRE', KEYS[1], math.ceil((capacity - tokens) / perMs) + 1000)
return wait
`

/** Adds a token to a bucket. A missing bucket counts as full. */
const GIVE_TOKEN_BACK = `
local tokens = redis.call('HGET', KEYS[1], 'tokens')
if tokens then redis.call('HSET', KEYS[1], 'tokens', string.format('%.17g', math.min(tonumber(ARGV[1]), tokens + 1))) end
return 0
`

/**
 * Token buckets in Redis. While it is unreachable or slow, the local ones are used, with one warning per
 * outage. The URL may contain a password, so it is never logged.
 */
export function createSharedBuckets(options: {
  url: string
  now: () => number
  logger: { warn(detail: object, message: string): void; info(message: string): void }
}) {
  const { now, logger } = options
  // Most gateways share no limits, and the library takes memory.
  const { Redis }: typeof import('ioredis') = createRequire(import.meta.url)('ioredis')
  const redis = new Redis(options.url, {
    commandTimeout: COMMAND_TIMEOUT_MS,
    connectTimeout: RECONNECT_MAX_MS,
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(attempt * 100, RECONNECT_MAX_MS),
  })
  redis.defineCommand('takeToken', { numberOfKeys: 1, lua: TAKE_TOKEN })
  redis.defineCommand('giveTokenBack', { numberOfKeys: 1, lua: GIVE_TOKEN_BACK })
  let isDown = false
  let pausedUntil = 0

  // Without a listener an error would end the process. Failed commands report the outage.
  redis.on('error', () => {})

  function onFailure(error: unknown) {
    pausedUntil = now() + PAUSE_MS
    if (isDown) return
    isDown = true
    const { name, code } = error as NodeJS.ErrnoException
    logger.warn(
      { reason: code ?? name },
      'shared rate limit store is unreachable; using local limits until the store answers',
    )
  }

  async function ask<Answer>(
    shared: (key: string) => Promise<Answer>,
    alone: (key: string) => Answer | Promise<Answer>,
    key: string,
  ) {
    if (now() < pausedUntil) return alone(key)
    try {
      const answer = await shared(key)
      if (isDown) logger.info('shared rate limit store is reachable again')
      isDown = false
      return answer
    } catch (error) {
      onFailure(error)
      return alone(key)
    }
  }

  return {
    /** Makes a limit, which `local` enforces while the store is unreachable. */
    limiter(options: { name: string; perMinute: number; burst: number; local: RateLimiter }): RateLimiter {
      const { name, local } = options
      const perMs = options.perMinute / 60_000
      const capacity = Math.max(1, options.burst)
      const keyOf = (key: string) => `service:rate:${name}:${key}`
      const take = async (key: string) => Math.ceil((await redis.takeToken(keyOf(key), capacity, perMs)) / 1000)
      const giveBack = async (key: string) => void (await redis.giveTokenBack(keyOf(key), capacity))
      return {
        take: (key) => ask(take, local.take, key),
        giveBack: (key) => ask(giveBack, local.giveBack, key),
      }
    },
    /** Resolves after one second at the latest; connecting continues. */
    start: () => Promise.race([redis.connect().catch(onFailure), delay(START_TIMEOUT_MS, undefined, { ref: false })]),
    close: () => redis.disconnect(),
  }
}
