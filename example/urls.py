"""URLs of the example site: home page, books, and the admin with pgperf."""

from django.contrib import admin
from django.urls import path

from example.books import views

urlpatterns = [
    path("", views.HomeView.as_view(), name="home"),
    path("books/", views.BookListView.as_view(), name="books"),
    path("admin/", admin.site.urls),
]
