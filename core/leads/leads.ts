import type { Core } from '../core.ts'
import { invalid, inWorkspace, type Scope } from '../errors.ts'
import { isDuplicateKey } from '../mongodb/faults.ts'
import { notErasing } from '../mongodb/not-erasing.ts'
import { type PageRequest, readPage } from '../page-token.ts'
import { field, integer, validate } from '../rules.ts'
import { normalEmail } from './contacts.ts'
import { type Contact, type Lead, toLead } from './model.ts'
import { contactIdsOf } from './suppressions.ts'

const maxPage = 100
const defaultPage = 50
/** Entries of leads and deliveries within this time in milliseconds are added together. */
const feedOfLeadsMs = 500

export type Marked = 'leads' | 'deliveries' | 'subscriptions'

/** Wakes the job that adds to the event feed what a write has marked. */
export const announceMarked = ({ bus }: Core, what: Marked): void =>
  void bus.emit('due', `feed of ${what}`, feedOfLeadsMs)

/** Stores a lead. If its id or operation key exists, returns the existing lead and stores nothing. */
export async function insertLead(core: Core, { leadId, ...rest }: Lead): Promise<Lead | undefined> {
  const { leads } = core.db
  try {
    await leads.insertOne({ _id: leadId, ...rest, unannounced: true })
    return undefined
  } catch (error) {
    if (!isDuplicateKey(error)) throw error
    const { operationKey } = rest
    const found = await leads.findOne(operationKey === undefined ? { _id: leadId } : { operationKey })
    if (!found) throw error
    return toLead(found)
  } finally {
    announceMarked(core, 'leads')
  }
}

export async function findLeads({ db }: Core, leadIds: string[]): Promise<Lead[]> {
  if (leadIds.length === 0) return []
  const found = db.leads.find({ _id: { $in: leadIds }, ...notErasing }, { batchSize: leadIds.length + 1 })
  return (await found.toArray()).map(toLead)
}

/** Errors: `LeadNotFound`, also for a lead of another workspace. */
export async function getLead(core: Core, leadId: string, scope: Scope): Promise<Lead> {
  const [found] = await findLeads(core, [leadId])
  return inWorkspace(found, scope, 'LeadNotFound')
}

/** Returns a page, newest first, or the leads with these ids. Errors: `ValidationFailed`. */
export async function listLeads(
  core: Core,
  query: PageRequest & { workspaceId: string; leadIds?: string[]; contact?: string },
) {
  const { workspaceId, leadIds = [], contact, limit = defaultPage, pageToken } = query
  validate(field('/leadIds', leadIds.length, integer(0, maxPage)))
  if (leadIds.length > 0)
    return { leads: (await findLeads(core, leadIds)).filter((lead) => lead.workspaceId === workspaceId) }
  const contacts = contact ? await contactIdsOf(core, workspaceId, { fields: { contact } }) : undefined
  if (contacts?.length === 0) throw invalid('/contact', 'format')
  const list = `leads ${workspaceId} ${contacts ?? ''}`
  const filter = { workspaceId, ...(contacts && { contacts: { $in: contacts } }), ...notErasing }
  const read = { list, by: 'createdAt', max: maxPage, limit, pageToken } as const
  const { page, nextPageToken } = await readPage(core.db.leads, filter, read)
  return { leads: page.map(toLead), nextPageToken }
}

const maxAtOnce = 500

/** Returns leads, newest first, after the given one. */
export async function leadsOfConversations(
  { db }: Core,
  conversationIds: string[],
  limit: number,
  after?: Lead,
): Promise<Lead[]> {
  const { createdAt, leadId } = after ?? {}
  const older = after && [{ createdAt: { $lt: createdAt } }, { createdAt, _id: { $lt: leadId } }]
  const theirs = { conversationId: { $in: conversationIds }, ...notErasing, $or: older }
  return (await db.leads.find(theirs, { sort: { createdAt: -1, _id: -1 }, limit }).toArray()).map(toLead)
}

/** Finds the contact of each conversation: its latest lead that has a name or an e-mail address. */
export async function contactsOf(core: Core, conversationIds: string[]): Promise<Map<string, Contact>> {
  const contacts = new Map<string, Contact>()
  let found: Lead[] = []
  do {
    const left = conversationIds.filter((id) => !contacts.has(id))
    found = await leadsOfConversations(core, left, maxAtOnce, found.at(-1))
    for (const lead of found) {
      const { conversationId = '' } = lead
      const contact = contactOf(lead)
      if (contact && !contacts.has(conversationId)) contacts.set(conversationId, contact)
    }
  } while (found.length === maxAtOnce)
  return contacts
}

/** Returns undefined for a lead with neither a name nor an e-mail address. */
export function contactOf({ leadId, fields }: Pick<Lead, 'leadId' | 'fields'>) {
  const name = fieldNamed(fields, 'name')
  const email = fieldNamed(fields, 'email') ?? Object.values(fields).find((value) => normalEmail(value) !== undefined)
  return (name ?? email) === undefined ? undefined : { leadId, name, email }
}

/** Ignores upper and lower case in the name. Returns undefined for an empty value. */
function fieldNamed(fields: Record<string, string>, wanted: string) {
  const [, value = ''] = Object.entries(fields).find(([name]) => name.toLowerCase() === wanted) ?? []
  return value.trim() || undefined
}
