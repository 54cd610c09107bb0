import { useEffect, useState } from 'preact/hooks'
import { leadTitle } from '../../../contract/lead-title.ts'
import { useConsole } from '../console-context.ts'
import { fieldWords } from '../failures.ts'
import { commonFields } from '../subscriptions/subscription-words.ts'

const sources: Record<string, string> = {
  'pre-chat-form': 'Pre-chat form',
  'offline-form': 'Offline form',
}

export const sourceText = (source: string) => sources[source] ?? source

/** The usual fields have words, and others keep their name. */
export const fieldWord = (key: string) => (commonFields.includes(key) ? fieldWords([key]) : key)
export const namedFields = (fields: Record<string, string>) =>
  Object.entries(fields).map(([key, value]) => [fieldWord(key), value] as const)

const maxLeads = 100

/** Returns a function that gives the title of a lead, or its id while it is not loaded. */
export function useLeadTitles(leadIds: string[]): (leadId: string) => string {
  const { api } = useConsole()
  const [titles, setTitles] = useState<ReadonlyMap<string, string>>(new Map())
  const missing = [...new Set(leadIds)].filter((leadId) => leadId !== '' && !titles.has(leadId)).slice(0, maxLeads)

  useEffect(() => {
    if (missing.length === 0) return
    const unknown = missing.map((leadId) => [leadId, leadId] as const)
    api.leads
      .listLeads({ leadIds: missing })
      .then(({ leads }) => leads.map((lead) => [lead.leadId, leadTitle(lead)] as const))
      .catch(() => [])
      .then((found) => setTitles((before) => new Map([...before, ...unknown, ...found])))
  }, [missing.join()])

  return (leadId) => titles.get(leadId) ?? leadId
}
