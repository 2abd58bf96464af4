import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import '@/app.css'
import '@/lib/theme'
import { Problem, onSignedOut } from '@/lib/api'
import { newRouter } from '@/routes/router'

// Who is signed out is led to the sign-in, and back to the same place.
onSignedOut.add(() => {
  if (location.pathname === '/sign-in') return
  client.removeQueries({ queryKey: ['me'] })
  void router.navigate({ to: '/sign-in', search: { next: location.pathname + location.search } })
})

const client = new QueryClient({
  defaultOptions: { queries: { retry: (n, error) => error instanceof Problem && (error.status === 0 || error.status >= 500) && n < 2, refetchOnWindowFocus: true, networkMode: 'always' } },
})
const router = newRouter(client)

const root = document.getElementById('root')
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  )
}
