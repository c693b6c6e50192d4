// The entry of the console, /console: the sign-in, or the page that the address names.

import { render } from 'preact'
import './ui/style.css'
import './ui/frame.css'
import './ui/console.css'
import './ui/second-click.ts'
import './ui/clicked-focus.ts'
import { followCopies } from './api/one-time.ts'
import { admin_key, sign_ins, startSession } from './api/session.ts'
import { keepPosition } from './api/step.ts'
import { OneTimeSecrets } from './keys/one-time.tsx'
import { pages } from './pages.ts'
import { address, match, to } from './router.ts'
import { Shell } from './shell.tsx'
import { SignIn } from './sign-in.tsx'
import { offer, sign_up_path } from './sign-up/offer.ts'
import { SignUp } from './sign-up/sign-up.tsx'
import { Welcome, welcome } from './sign-up/welcome.tsx'
import { Empty, Page } from './ui/page.tsx'
import { Toast } from './ui/toast.tsx'

function Console() {
  return (
    <>
      <Entered />
      <OneTimeSecrets />
      <Toast />
    </>
  )
}

function Entered() {
  const is_sign_up = address.value.path === sign_up_path && offer !== null
  if (welcome.value) return <Welcome tenant={welcome.value} />
  if (admin_key.value === null) return is_sign_up ? <SignUp /> : <SignIn />
  return (
    <Shell key={sign_ins.value}>
      <Current />
    </Shell>
  )
}

function Current() {
  for (const { pattern, page: PageOf } of pages) {
    const params = match(pattern, address.value.path)
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
followCopies()
keepPosition()
render(<Console />, document.getElementById('app')!)
