import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { normalPhone } from '../../contract/contacts.ts'
import type { FieldIssue } from '../../contract/errors.ts'
import type { Bus } from '../bus.ts'
import { ServiceError } from '../errors.ts'
import { shortHash } from '../keys/keyring.ts'
import { cutPage, readPageToken } from '../page-token.ts'
import { field, integer, line, text, validate } from '../rules.ts'
import type { SessionStore } from '../sessions/session-store.ts'
import { createLiveCache } from '../wakeups/live-cache.ts'
import type { Wakeups } from '../wakeups/wakeups.ts'
import type { WorkspaceStore } from '../workspaces/workspace-store.ts'
import { type Contact, type ContactKind, contactsIn, normalEmail } from './contacts.ts'
import type { Lead, Suppression } from './model.ts'
import type { SuppressionStore } from './suppression-store.ts'

/**
 * An entry in the form in which an operator sends it. `kind` is undefined if the operator sent no
 * known kind.
 */
export interface SuppressionEntry {
  kind?: ContactKind
  value: string
}

/** The list of people whom a workspace must not contact (contract, section 3). */
export interface Suppressions {
  /**
   * Adds entries. Entries that are on the list stay unchanged. Ends the waiting deliveries of these
   * people's leads before it resolves. Errors: NotFound, `ValidationFailed`.
   */
  add(request: {
    workspaceId: string
    entries: SuppressionEntry[]
    reason: string
    addedBy: string
  }): Promise<{ added: number; existing: number }>
  /** Removes entries. Returns the number of removed entries. Errors: `ValidationFailed`. */
  remove(request: { workspaceId: string; entries: SuppressionEntry[]; suppressionIds: string[] }): Promise<number>
  /**
   * Returns a page of entries, newest first. If `entry` is set, returns at most this entry. Errors:
   * `ValidationFailed`.
   */
  list(query: {
    workspaceId: string
    limit?: number
    pageToken?: string
    entry?: SuppressionEntry
  }): Promise<{ suppressions: Suppression[]; nextPageToken?: string }>
  /** Returns whether a person with these fields, or one of these subjects, is on the list. */
  isSuppressed(workspaceId: string, person: { fields: Record<string, string>; subjects?: string[] }): Promise<boolean>
  /** Returns whether one of these workspaces has entries. */
  hasAny(workspaceIds: string[]): Promise<boolean>
  /**
   * Returns the ids of the leads whose person is on the list. The person may also be listed as the
   * verified visitor of the lead's conversation.
   */
  suppressedLeads(leads: Lead[]): Promise<Set<string>>
  /**
   * Returns keyed hashes of the contacts of a lead. The sweep uses them to find the leads of an
   * entry.
   */
  contactIds(workspaceId: string, person: { fields: Record<string, string>; subjects?: string[] }): Promise<string[]>
  /** Ends the deliveries that `add` did not end, because its process died. */
  sweep(): Promise<void>
}

const maxEntries = 1_000
const maxPage = 1_000
const defaultPage = 100
const sweepBatch = 500
/** Maximum age in milliseconds of a cached answer to whether a workspace has entries. */
const emptyMaxAgeMs = 400

export function createSuppressions(dependencies: {
  store: SuppressionStore
  sessions: Pick<SessionStore, 'subjectsIn'>
  workspaceStore: Pick<WorkspaceStore, 'findWorkspace'>
  /** Ends the deliveries of leads with these contact ids, except those that a worker is sending. */
  endDeliveries(contactIds: string[]): Promise<void>
  idsKey: () => Promise<Uint8Array>
  bus: Bus
  wakeups: Pick<Wakeups, 'changing' | 'stateChanged' | 'isCurrent'>
  now: () => number
}): Suppressions {
  const { store, sessions, workspaceStore, endDeliveries, idsKey, bus, wakeups, now } = dependencies

  /**
   * Whether a workspace has entries. The cache saves a lookup per lead in workspaces without
   * entries.
   */
  const hasEntries = createLiveCache<{ any: boolean }>({
    bus,
    isCurrent: wakeups.isCurrent,
    maxEntries: 10_000,
    maxAgeMs: emptyMaxAgeMs,
    async loadMany(keys) {
      const found = new Set(await store.workspacesWithEntries(keys.map(workspaceOf)))
      return new Map(keys.map((key) => [key, { any: found.has(workspaceOf(key)) }]))
    },
  })

  async function idsOf(workspaceId: string, contacts: Contact[]): Promise<string[]> {
    const key = await idsKey()
    return [...new Set(contacts.map((contact) => idOf(key, workspaceId, contact)))]
  }

  const contactIds: Suppressions['contactIds'] = (workspaceId, { fields, subjects = [] }) =>
    idsOf(workspaceId, [...contactsIn(fields), ...subjects.map((value) => ({ kind: 'subject' as const, value }))])

  async function hasAnyIn(workspaceId: string): Promise<boolean> {
    return (await hasEntries.get(cacheKey(workspaceId)))?.any ?? false
  }

  async function sweepEntries(suppressionIds: string[]) {
    await endDeliveries(suppressionIds)
    await store.markSwept(suppressionIds)
  }

  return {
    contactIds,

    hasAny: async (workspaceIds) => (await Promise.all([...new Set(workspaceIds)].map(hasAnyIn))).includes(true),

    async add({ workspaceId, entries, reason, addedBy }) {
      if (!(await workspaceStore.findWorkspace(workspaceId))) throw new ServiceError(ErrorCode.NOT_FOUND)
      validate(field('/reason', reason, text(0, 512)), entries.length === 0 ? noEntries : undefined)
      const contacts = readEntries(entries)
      const key = await idsKey()
      const fixed = { workspaceId, addedBy, addedAt: new Date(now()), ...(reason && { reason }) }
      const byId = new Map(
        contacts.map((contact) => {
          const suppressionId = idOf(key, workspaceId, contact)
          return [suppressionId, { suppressionId, kind: contact.kind, ...fixed }]
        }),
      )
      const ids = [...byId.keys()]
      const added = await wakeups.changing([cacheKey(workspaceId)], () => store.add([...byId.values()]))
      await sweepEntries(ids)
      return { added, existing: ids.length - added }
    },

    async remove({ workspaceId, entries, suppressionIds }) {
      validate(
        entries.length + suppressionIds.length === 0 ? noEntries : undefined,
        suppressionIds.length > maxEntries ? { path: '/suppressionIds', rule: 'maxItems' } : undefined,
      )
      return store.remove(workspaceId, [...(await idsOf(workspaceId, readEntries(entries))), ...suppressionIds])
    },

    async list({ workspaceId, limit = defaultPage, pageToken, entry }) {
      validate(field('/limit', limit, integer(1, maxPage)))
      const place = `suppressions ${workspaceId}`
      const end = readPageToken(place, pageToken)
      const looked = entry && readEntries([entry], () => '/entry')
      const found = await store.list(workspaceId, limit + 1, {
        before: end && { addedAt: end.at, id: end.id },
        only: looked && (await idsOf(workspaceId, looked)),
      })
      const { page, nextPageToken } = cutPage(found, limit, place, ({ addedAt, suppressionId }) => ({
        at: addedAt,
        id: suppressionId,
      }))
      return { suppressions: page, nextPageToken }
    },

    async isSuppressed(workspaceId, person) {
      if (!(await hasAnyIn(workspaceId))) return false
      return (await store.find(await contactIds(workspaceId, person))).length > 0
    },

    async suppressedLeads(leads) {
      const any = await Promise.all(leads.map(({ workspaceId }) => hasAnyIn(workspaceId)))
      const checked = leads.filter((_, index) => any[index])
      if (checked.length === 0) return new Set()
      const subjects = await sessions.subjectsIn(checked.flatMap(({ conversationId }) => conversationId ?? []))
      const idsByLead = await Promise.all(
        checked.map(async ({ leadId, workspaceId, fields, conversationId = '' }) => ({
          leadId,
          ids: await contactIds(workspaceId, { fields, subjects: subjects.get(conversationId) ?? [] }),
        })),
      )
      const listed = new Set(await store.find(idsByLead.flatMap(({ ids }) => ids)))
      return new Set(idsByLead.flatMap(({ leadId, ids }) => (ids.some((id) => listed.has(id)) ? [leadId] : [])))
    },

    async sweep() {
      for (;;) {
        const ids = await store.unswept(sweepBatch)
        if (ids.length === 0) return
        await sweepEntries(ids)
      }
    },
  }
}

function idOf(key: Uint8Array, workspaceId: string, { kind, value }: Contact): string {
  return `spr_${shortHash(key, 'suppression', workspaceId, kind, value)}`
}

const cachePrefix = 'suppressions:'
/** Whether this id of a changed object is that of the list of a workspace. */
export const isSuppressionList = (id: string): boolean => id.startsWith(cachePrefix)
const cacheKey = (workspaceId: string) => `${cachePrefix}${workspaceId}`
const workspaceOf = (key: string) => key.slice(cachePrefix.length)
const noEntries: FieldIssue = { path: '/entries', rule: 'minItems' }

/**
 * Returns the entries in normal form. If entries are invalid, throws a `ValidationFailed` that
 * names each of them.
 */
function readEntries(entries: SuppressionEntry[], pathOf = (index: number) => `/entries/${index}`): Contact[] {
  if (entries.length > maxEntries) validate({ path: '/entries', rule: 'maxItems' })
  const contacts = entries.map(({ kind, value }) => ({ kind, value: kind && normal[kind](value) }))
  validate(
    ...contacts.map(({ kind, value }, index) =>
      kind === undefined
        ? { path: pathOf(index), rule: 'required' }
        : value === undefined
          ? { path: `${pathOf(index)}/${kind}`, rule: 'format' }
          : undefined,
    ),
  )
  return contacts as Contact[]
}

const normal: Record<ContactKind, (value: string) => string | undefined> = {
  subject: (value) => (line(1, 256)(value) === undefined ? value : undefined),
  email: normalEmail,
  phone: normalPhone,
}
