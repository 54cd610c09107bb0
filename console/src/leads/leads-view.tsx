import { useState } from 'preact/hooks'
import { leadTitle } from '../../../contract/lead-title.ts'
import { useConsole } from '../console-context.ts'
import { areaName, pathOf } from '../router.ts'
import { SearchBar } from '../ui/form.tsx'
import { PagedList, usePages } from '../ui/load.tsx'
import { Empty, Page, RowText, When } from '../ui/page.tsx'
import { namedFields, sourceText } from './lead-titles.ts'

export function LeadsView() {
  const { api } = useConsole()
  const [contact, setContact] = useState('')
  const list = usePages((pageToken) => api.leads.listLeads({ pageToken, contact }), 'leads', [contact])
  const empty = contact ? (
    <Empty icon="search" title="No leads with this contact">
      <p>Search for a whole address or number. Leave it empty for all leads.</p>
    </Empty>
  ) : (
    <Empty icon="leads" title="No leads yet">
      <p>
        Leads come from forms that visitors fill in. Turn on the pre-chat or offline form under{' '}
        <a href={pathOf({ view: 'installations' })}>Websites</a>.
      </p>
    </Empty>
  )
  return (
    <Page title={areaName('leads')} lead="Contact details from visitors.">
      <SearchBar label="E-mail address or telephone number" maxLength={254} mayBeEmpty onSearch={setContact} />
      <PagedList list={list} what="leads" empty={empty}>
        {(lead) => {
          const title = leadTitle(lead)
          const others = namedFields(lead.fields).filter(([, value]) => value.trim() !== title)
          return (
            <li key={lead.leadId}>
              <a class="table-row" href={pathOf({ view: 'lead', leadId: lead.leadId })}>
                <RowText title={title}>{others.map(([name, value]) => `${name}: ${value}`).join(' · ')}</RowText>
                <span class="tag">{sourceText(lead.source)}</span>
                <When at={lead.createdAt} />
              </a>
            </li>
          )
        }}
      </PagedList>
    </Page>
  )
}
