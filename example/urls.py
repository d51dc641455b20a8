"""The site's pages: a home page, the catalogue of books, and the admin, where pgperf lives."""

from django.contrib import admin
from django.urls import path

from example.books import views

urlpatterns = [
    path("", views.HomeView.as_view(), name="home"),
    path("books/", views.BookListView.as_view(), name="books"),
    path("admin/", admin.site.urls),
]
