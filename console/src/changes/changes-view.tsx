import type { PolicyChange } from '#proto/workspace/v1/workspace_pb.js'
import { backTo } from '../areas.ts'
import { useConsole } from '../console-context.ts'
import { pathOf } from '../router.ts'
import { Empty } from '../ui/notice.tsx'
import { Page } from '../ui/page.tsx'
import { PagedList, RefreshButton } from '../ui/paged-list.tsx'
import { usePages } from '../ui/pages.ts'
import { When } from '../ui/when.tsx'
import { actionText, settingsText } from './change-words.ts'

/** Lists who changed which policy of the workspace, or of one installation. */
export function ChangesView({ target }: { target?: string }) {
  const { api } = useConsole()
  const list = usePages(
    (pageToken) => api.workspaces.listPolicyChanges({ pageToken, target }),
    'changes',
    ({ changeId }) => changeId,
    [target],
  )
  return (
    <Page
      title="Changes"
      back={
        target === undefined
          ? backTo('installations')
          : { path: pathOf({ view: 'installation', siteKey: target }), label: 'Website' }
      }
      lead={
        target === undefined ? (
          'Who changed websites, connections, the do-not-contact list and bans.'
        ) : (
          <span class="mono">{target}</span>
        )
      }
      actions={<RefreshButton list={list} />}
    >
      <PagedList list={list} name="changes" empty={<Empty icon="info" title="No changes yet" />}>
        {(change) => <ChangeRow key={change.changeId} change={change} showsTarget={target === undefined} />}
      </PagedList>
    </Page>
  )
}

function ChangeRow({ change, showsTarget }: { change: PolicyChange; showsTarget: boolean }) {
  const { action, actor, at, target, confirmed } = change
  const settings = settingsText(change)
  return (
    <li class="table-row">
      <span class="table-main">
        <span class="table-title">{actionText(action)}</span>
        {settings && <span class="hint mono breakable">{settings}</span>}
        <span class="hint breakable">
          by {actor}
          {showsTarget && target && (
            <>
              {' · '}
              <span class="mono">{target}</span>
            </>
          )}
        </span>
      </span>
      {!confirmed && <span class="tag warn">Result unknown</span>}
      <When at={at} full />
    </li>
  )
}
