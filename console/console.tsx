// The console, /console: who is signed in sees the page that the address names.

import { type JSX, render } from 'preact'
import './style.css'
import './console.css'
import './data.css'
import { pages } from './nav.ts'
import { address, match, to } from './router.ts'
import { admin_key, sign_ins, startSession } from './session.ts'
import { Shell } from './shell.tsx'
import { SignIn } from './sign-in.tsx'
import { Page } from './ui/page.tsx'
import { Empty } from './ui/states.tsx'
import { Toast } from './ui/toast.tsx'

function Console(): JSX.Element {
  return (
    <>
      {admin_key.value === null ? (
        <SignIn />
      ) : (
        <Shell key={sign_ins.value}>
          <Current />
        </Shell>
      )}
      <Toast />
    </>
  )
}

function Current(): JSX.Element {
  const { path } = address.value
  for (const { pattern, page: PageOf } of pages) {
    const params = match(pattern, path)
    if (params) return <PageOf key={pattern} params={params} />
  }
  return (
    <Page title="Not found">
      <Empty title="There is no such page">
        <a href={to('/console')}>Go to the overview</a>
      </Empty>
    </Page>
  )
}

startSession()
render(<Console />, document.getElementById('app')!)
