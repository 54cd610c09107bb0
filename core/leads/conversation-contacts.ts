import type { ContactsOf } from '../conversations/model.ts'
import { normalEmail } from './contacts.ts'
import type { LeadStore } from './lead-store.ts'
import type { Lead } from './model.ts'

/** Maximum number of leads that are read for one page of conversations. */
const maxLeads = 500

/** Finds the contact of each conversation: its latest lead that has a name or an e-mail address. */
export function createContactsOf(leads: Pick<LeadStore, 'ofConversations'>): ContactsOf {
  return async (conversationIds) => {
    const found = await leads.ofConversations(conversationIds, maxLeads)
    const contacts = found.flatMap((lead) => {
      const contact = contactOf(lead)
      return lead.conversationId && contact ? [[lead.conversationId, contact] as const] : []
    })
    // The last entry of a key remains, so the newest lead must come last.
    return new Map(contacts.reverse())
  }
}

/** Returns the contact of a lead; undefined if it has neither a name nor an e-mail address. */
export function contactOf({ leadId, fields }: Pick<Lead, 'leadId' | 'fields'>) {
  const name = fieldNamed(fields, 'name')
  const email = fieldNamed(fields, 'email') ?? Object.values(fields).find((value) => normalEmail(value) !== undefined)
  return (name ?? email) === undefined ? undefined : { leadId, name, email }
}

/**
 * Returns the value of a field, ignoring upper and lower case in its name. Returns undefined if the
 * value is empty.
 */
function fieldNamed(fields: Record<string, string>, wanted: string): string | undefined {
  const [, value = ''] = Object.entries(fields).find(([name]) => name.toLowerCase() === wanted) ?? []
  return value.trim() || undefined
}
