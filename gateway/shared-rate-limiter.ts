import { setTimeout as delay } from 'node:timers/promises'
import { Redis, type Result } from 'ioredis'
import type { RateLimiter, Verdict } from './rate-limiter.ts'

/** A store of token buckets that several gateways share. */
export interface SharedBuckets {
  /** Buckets of one kind. While the store cannot be reached, `local` counts for this process alone. */
  limiter(options: { name: string; perMinute: number; burst: number; local: RateLimiter }): RateLimiter
  /** Connects. Settles when that is done, or after a second: the connection is then sought in the background. */
  start(): Promise<void>
  close(): void
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    takeToken(key: string, capacity: number, perMs: number): Result<number, Context>
    giveTokenBack(key: string, capacity: number): Result<number, Context>
  }
}

/** Longer than this an answer is not worth waiting for, in milliseconds. */
const ANSWER_MS = 250
/** How long the store is left alone after a failure, in milliseconds. */
const REST_MS = 1_000
const START_MS = 1_000
const RECONNECT_MAX_MS = 5_000

/**
 * One token, or how many milliseconds until there is one. The store's own clock counts, so that gateways whose clocks differ
 * agree; a bucket is dropped once it would be full.
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

/** A bucket that is not there is full. */
const GIVE_TOKEN_BACK = `
local tokens = redis.call('HGET', KEYS[1], 'tokens')
if tokens then redis.call('HSET', KEYS[1], 'tokens', string.format('%.17g', math.min(tonumber(ARGV[1]), tokens + 1))) end
return 0
`

/**
 * Token buckets in Redis. An unreachable or slow Redis takes nothing down: the local buckets count meanwhile, and the log
 * says so once for each outage.
 *
 * @param options.url `redis:` or `rediss:`; it may hold a password and is never logged
 */
export function createSharedBuckets(options: {
  url: string
  now: () => number
  logger: { warn(detail: object, message: string): void; info(message: string): void }
}): SharedBuckets {
  const { now, logger } = options
  const redis = new Redis(options.url, {
    commandTimeout: ANSWER_MS,
    connectTimeout: RECONNECT_MAX_MS,
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(attempt * 100, RECONNECT_MAX_MS),
  })
  redis.defineCommand('takeToken', { numberOfKeys: 1, lua: TAKE_TOKEN })
  redis.defineCommand('giveTokenBack', { numberOfKeys: 1, lua: GIVE_TOKEN_BACK })
  let away = false
  let restUntil = 0

  // Without a listener an error of the connection would end the process; each failed take tells of it.
  redis.on('error', () => {})

  function failed(error: unknown): void {
    restUntil = now() + REST_MS
    if (away) return
    away = true
    const { name, code } = error as NodeJS.ErrnoException
    logger.warn({ reason: code ?? name }, 'rate limits are counted by this gateway alone: their store is out of reach')
  }

  function answered(): void {
    if (!away) return
    away = false
    logger.info('rate limits are shared again')
  }

  async function take(key: string, capacity: number, perMs: number): Promise<Verdict> {
    const wait = await redis.takeToken(key, capacity, perMs)
    return wait === 0 ? { allowed: true } : { allowed: false, retryAfter: Math.max(1, Math.ceil(wait / 1000)) }
  }

  return {
    limiter({ name, perMinute, burst, local }) {
      const perMs = perMinute / 60_000
      const capacity = Math.max(1, burst)
      const keyOf = (key: string) => `service:rate:${name}:${key}`
      /** Asks the store, or the local buckets while it is out of reach. */
      async function ask<Answer>(
        shared: () => Promise<Answer>,
        alone: () => Answer | Promise<Answer>,
      ): Promise<Answer> {
        if (now() < restUntil) return alone()
        try {
          const answer = await shared()
          answered()
          return answer
        } catch (error) {
          failed(error)
          return alone()
        }
      }
      return {
        take: (key) =>
          ask(
            () => take(keyOf(key), capacity, perMs),
            () => local.take(key),
          ),
        giveBack: (key) =>
          ask(
            async () => void (await redis.giveTokenBack(keyOf(key), capacity)),
            () => local.giveBack(key),
          ),
      }
    },
    start: () => Promise.race([redis.connect().catch(failed), delay(START_MS, undefined, { ref: false })]),
    close: () => redis.disconnect(),
  }
}
