import type { Lead } from '#proto/lead/v1/lead_pb.js'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { Empty, FailureNotice, Loading } from '../ui/notice.tsx'
import { Page } from '../ui/page.tsx'
import { usePages } from '../ui/pages.ts'
import { When } from '../ui/when.tsx'
import { leadTitle, sourceText } from './lead-words.ts'

export function LeadsView() {
  const { api } = useConsole()
  const list = usePages<Lead>(
    async (pageToken) => {
      const { leads, nextPageToken } = await api.leads.listLeads({ pageToken })
      return { items: leads, nextPageToken }
    },
    ({ leadId }) => leadId,
    [],
  )
  return (
    <Page
      title="Leads"
      lead="Contact data from visitor forms and other services."
      actions={
        <button type="button" class="button" disabled={list.loading} onClick={() => void list.reload()}>
          Refresh
        </button>
      }
    >
      <FailureNotice failure={list.failure} retry={() => void list.reload()} />
      {list.first && <Loading label="Loading leads" />}
      {!list.first && !list.failure && list.items.length === 0 && (
        <Empty icon="leads" title="No leads yet">
          <p>
            Leads come from forms that visitors fill in. Turn on the pre-chat or offline form under{' '}
            <a href={pathOf({ view: 'installations' })}>Installations</a>.
          </p>
        </Empty>
      )}
      {list.items.length > 0 && (
        <ul class="table">
          {list.items.map((lead) => (
            <li key={lead.leadId}>
              <a class="table-row" href={pathOf({ view: 'lead', leadId: lead.leadId })}>
                <span class="table-main">
                  <span class="table-title breakable">
                    <bdi>{leadTitle(lead)}</bdi>
                  </span>
                  <span class="table-sub">
                    {Object.entries(lead.fields)
                      .filter(([, value]) => value.trim() !== leadTitle(lead))
                      .map(([name, value]) => `${name}: ${value}`)
                      .join(' · ')}
                  </span>
                </span>
                <span class="tag">{sourceText(lead.source)}</span>
                <When at={lead.createdAt} />
              </a>
            </li>
          ))}
        </ul>
      )}
      {list.hasMore && (
        <button type="button" class="button ghost more" disabled={list.loading} onClick={() => void list.more()}>
          Load earlier leads
        </button>
      )}
    </Page>
  )
}
