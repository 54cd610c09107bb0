import { useState } from 'preact/hooks'
import { useConsole } from '../console-context.ts'
import { areaName, pathOf } from '../router.ts'
import { PagedList, usePages } from '../ui/load.tsx'
import { Empty, Page, When } from '../ui/page.tsx'
import { AddSuppression, kindText, LookUp, RemoveEntry, SuppressionFacts } from './look-up.tsx'

export function SuppressionsView() {
  const { api, announcer } = useConsole()
  /** Number of changes of the list. Each change reloads the list and the look-up's result. */
  const [changes, setChanges] = useState(0)
  const list = usePages((pageToken) => api.workspaces.listSuppressions({ pageToken }), 'suppressions', [changes])

  function changed(text: string) {
    announcer.say(text)
    setChanges((count) => count + 1)
  }

  return (
    <Page
      title={areaName('suppressions')}
      lead="People who must not be contacted. Their forms are rejected and their leads are not sent. Chat still works for them."
      actions={
        <>
          <a class="button" href={pathOf({ view: 'suppression-import' })}>
            Import
          </a>
          <AddSuppression button="Add" kind="primary" icon="plus" onAdded={changed} />
        </>
      }
    >
      <LookUp changes={changes} onChanged={changed} />
      <PagedList
        list={list}
        what="entries"
        empty={
          <Empty icon="suppressions" title="Nobody is on the list">
            <p>Add people who asked not to be contacted, or import a list from another system.</p>
          </Empty>
        }
      >
        {(suppression) => (
          <li key={suppression.suppressionId} class="table-row suppression">
            <span class="tag">{kindText(suppression.kind)}</span>
            <SuppressionFacts suppression={suppression} />
            <When at={suppression.addedAt} />
            <RemoveEntry suppression={suppression} onChanged={changed} />
          </li>
        )}
      </PagedList>
      {list.items.length > 0 && (
        <p class="hint">
          Addresses and numbers are stored only as hashes, so the list cannot show them. To find an entry, look it up.
        </p>
      )}
    </Page>
  )
}
