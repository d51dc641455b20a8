"""The site's public pages."""

from typing import Any

from django.db.models import Count, QuerySet
from django.views.generic import ListView, TemplateView

from example.books.models import Book, Publisher


class HomeView(TemplateView):
    """The home page, with links to the benchmarks and runs."""

    template_name = "home.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(**kwargs, book_count=Book.objects.count())


class BookListView(ListView):
    """The catalogue, in four queries: the publishers with the number of their books, the number of
    books, the books of the page with author and publisher, and the other books of their authors.
    """

    template_name = "books/list.html"
    context_object_name = "books"
    paginate_by = 25

    def get_queryset(self) -> QuerySet[Book]:
        books = Book.objects.select_related("author", "publisher").prefetch_related("author__books")
        if search := self.search():
            books = books.filter(title__icontains=search)
        if publisher := self.request.GET.get("publisher"):
            books = books.filter(publisher__name=publisher.replace("\0", ""))
        return books

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        publishers = Publisher.objects.annotate(book_count=Count("books"))
        return super().get_context_data(**kwargs, search=self.search(), publishers=publishers)

    def search(self) -> str:
        """The search text, without NUL, which PostgreSQL cannot store."""
        return self.request.GET.get("q", "").replace("\0", "").strip()[:100]
