import { normalPhone } from '../../contract/contacts.ts'
import type { FieldIssue } from '../../contract/errors.ts'
import { type Core, dateOf, perCore } from '../core.ts'
import { shortHash } from '../keys/keyring.ts'
import { findIds } from '../mongodb/with-id.ts'
import { type PageRequest, readPage } from '../page-token.ts'
import { field, issueIf, line, text, validate } from '../rules.ts'
import { sessionStoreOf } from '../sessions/session-store.ts'
import { idsKey } from '../sessions/visitor-ids.ts'
import { liveCacheOf } from '../wakeups/live-cache.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import { findWorkspace } from '../workspaces/workspaces.ts'
import { type Contact, type ContactKind, contactsIn, normalEmail } from './contacts.ts'
import type { Lead } from './model.ts'

/** An entry as an operator sends it. It has no kind if the operator sent an unknown one. */
export interface SuppressionEntry {
  kind?: ContactKind
  value: string
}

export interface NewSuppressions {
  workspaceId: string
  entries: SuppressionEntry[]
  reason: string
  addedBy: string
}

/** The fields of a lead, and the host's ids of a person. */
export interface Person {
  fields: Record<string, string>
  subjects?: string[]
}

const maxEntries = 1_000
const maxPage = 1_000
const defaultPage = 100

/** Whether workspaces have entries. The cache saves a lookup per lead where there are none. */
const hasEntriesOf = perCore((core) =>
  liveCacheOf<{ any: boolean }>(core, {
    maxEntries: 10_000,
    maxAgeMs: 400,
    async loadMany(keys) {
      const { suppressions } = core.db
      const projection = { workspaceId: 1 } as const
      const found = await Promise.all(
        keys.map((key) => suppressions.findOne({ workspaceId: workspaceOf(key) }, { projection })),
      )
      return new Map(keys.map((key, index) => [key, { any: found[index] !== null }]))
    },
  }),
)

const hasAnyIn = async (core: Core, workspaceId: string) =>
  (await hasEntriesOf(core).get(cacheKey(workspaceId)))?.any ?? false

export const hasSuppressions = async (core: Core, workspaceIds: string[]): Promise<boolean> =>
  (await Promise.all([...new Set(workspaceIds)].map((id) => hasAnyIn(core, id)))).includes(true)

async function idsIn(core: Core, workspaceId: string, contacts: Contact[]) {
  const key = await idsKey(core)
  return [...new Set(contacts.map((contact) => idOf(key, workspaceId, contact)))]
}

/** Returns keyed hashes of a person's contacts. */
export const contactIdsOf = (core: Core, workspaceId: string, { fields, subjects = [] }: Person): Promise<string[]> =>
  idsIn(core, workspaceId, [...contactsIn(fields), ...subjects.map((value) => ({ kind: 'subject' as const, value }))])

/**
 * Stores entries of the list of people whom a workspace must not contact (contract, section 3). Present
 * ones stay. Returns the ids of all. Errors: `NotFound`, `ValidationFailed`.
 */
export async function storeSuppressions(
  core: Core,
  { workspaceId, entries, reason, addedBy }: NewSuppressions,
): Promise<{ ids: string[]; added: number }> {
  await findWorkspace(core, workspaceId)
  validate(field('/reason', reason, text(0, 512)), entries.length === 0 ? noEntries : undefined)
  const contacts = readEntries(entries)
  const key = await idsKey(core)
  const added = { workspaceId, addedBy, addedAt: dateOf(core), ...(reason && { reason }) }
  const fixed = { ...added, unswept: true as const }
  const kinds = new Map(contacts.map((contact) => [idOf(key, workspaceId, contact), contact.kind]))
  const writes = [...kinds].map(([_id, kind]) => ({
    updateOne: { filter: { _id }, update: { $setOnInsert: { kind, ...fixed } }, upsert: true },
  }))
  const { upsertedCount } = await wakeupsOf(core).changing([cacheKey(workspaceId)], () =>
    core.db.suppressions.bulkWrite(writes, { ordered: false }),
  )
  return { ids: [...kinds.keys()], added: upsertedCount }
}

/** Returns the number of removed entries. Errors: `ValidationFailed`. */
export async function removeSuppressions(
  core: Core,
  removed: { workspaceId: string; entries: SuppressionEntry[]; suppressionIds: string[] },
): Promise<number> {
  const { workspaceId, entries, suppressionIds } = removed
  validate(
    entries.length + suppressionIds.length === 0 ? noEntries : undefined,
    issueIf(suppressionIds.length > maxEntries, '/suppressionIds', 'maxItems'),
  )
  const ids = [...(await idsIn(core, workspaceId, readEntries(entries))), ...suppressionIds]
  return (await core.db.suppressions.deleteMany({ _id: { $in: ids }, workspaceId })).deletedCount
}

/** Returns a page of entries, newest first, or `entry` if it is listed. Errors: `ValidationFailed`. */
export async function listSuppressions(
  core: Core,
  query: PageRequest & { workspaceId: string; entry?: SuppressionEntry },
) {
  const { workspaceId, limit = defaultPage, pageToken, entry } = query
  const looked = entry && readEntries([entry], () => '/entry')
  const filter = { workspaceId, ...(looked && { _id: { $in: await idsIn(core, workspaceId, looked) } }) }
  const list = `suppressions ${workspaceId}`
  return readPage(core.db.suppressions, filter, { list, by: 'addedAt', max: maxPage, limit, pageToken })
}

const findListed = async ({ db }: Core, suppressionIds: string[]) =>
  new Set(await findIds(db.suppressions, { _id: { $in: suppressionIds } }))

export async function isSuppressed(core: Core, workspaceId: string, person: Person): Promise<boolean> {
  if (!(await hasAnyIn(core, workspaceId))) return false
  return (await findListed(core, await contactIdsOf(core, workspaceId, person))).size > 0
}

/** Returns the ids of leads whose person, or verified visitor of the conversation, is on the list. */
export async function findSuppressedLeads(core: Core, leads: Lead[]): Promise<Set<string>> {
  const any = await Promise.all(leads.map(({ workspaceId }) => hasAnyIn(core, workspaceId)))
  const checked = leads.filter((_, index) => any[index])
  if (checked.length === 0) return new Set()
  const subjects = await sessionStoreOf(core).subjectsIn(checked.flatMap(({ conversationId }) => conversationId ?? []))
  const idsByLead = await Promise.all(
    checked.map(async ({ leadId, workspaceId, fields, conversationId = '' }) => ({
      leadId,
      ids: await contactIdsOf(core, workspaceId, { fields, subjects: subjects.get(conversationId) ?? [] }),
    })),
  )
  const all = idsByLead.flatMap(({ ids }) => ids)
  const listed = await findListed(core, all)
  return new Set(idsByLead.flatMap(({ leadId, ids }) => (ids.some((id) => listed.has(id)) ? [leadId] : [])))
}

function idOf(key: Uint8Array, workspaceId: string, { kind, value }: Contact) {
  return `spr_${shortHash(key, 'suppression', workspaceId, kind, value)}`
}

const cachePrefix = 'suppressions:'
/** Whether a changed object is the list of a workspace. */
export const isSuppressionList = (id: string): boolean => id.startsWith(cachePrefix)
const cacheKey = (workspaceId: string) => `${cachePrefix}${workspaceId}`
const workspaceOf = (key: string) => key.slice(cachePrefix.length)
const noEntries: FieldIssue = { path: '/entries', rule: 'minItems' }

/** Returns the entries in normal form. Errors: `ValidationFailed`, which names each invalid one. */
function readEntries(entries: SuppressionEntry[], pathOf = (index: number) => `/entries/${index}`) {
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
